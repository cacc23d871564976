// Tests the dashboards as Grafana loads them.
import { readdirSync, readFileSync } from 'node:fs'
import { DASHBOARDS } from '@bullpen/telemetry/dashboards'
import { describe, expect, it } from 'vitest'
import { dashboardFiles } from './index.ts'

interface GrafanaPanel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description: string
  readonly datasource: { readonly uid: string }
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly fieldConfig: { readonly defaults: { readonly links: readonly { readonly url: string }[] } }
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
}

interface GrafanaDashboard {
  readonly uid: string
  readonly tags: readonly string[]
  readonly panels: readonly GrafanaPanel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly allValue?: string }[] }
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] }
  readonly links: readonly { readonly type: string; readonly url?: string; readonly tags: readonly string[] }[]
}

const folder = new URL('../../../k8s/base/dashboards/', import.meta.url)
const files = dashboardFiles()
const dashboards = Object.values(files).map((text) => JSON.parse(text) as GrafanaDashboard)
const DATASOURCE = ['$', '{datasource}'].join('')

it('the committed files are those that the code builds (if this fails: npm run dashboards -w packages/telemetry)', () => {
  expect(readdirSync(folder).toSorted()).toEqual(Object.keys(files).toSorted())
  for (const [name, text] of Object.entries(files)) expect(readFileSync(new URL(name, folder), 'utf8')).toBe(text)
})

it('the dashboards have uids of their own, which do not change when a file is renamed', () => {
  expect(dashboards.map(({ uid }) => uid)).toEqual([
    'bullpen-fleet',
    'bullpen-queue',
    'bullpen-task',
    'bullpen-workers',
    'bullpen-api-and-redis',
  ])
})

describe.each(dashboards.map((dashboard) => [dashboard.uid, dashboard] as const))(
  'the dashboard %s',
  (uid, dashboard) => {
    const panels = dashboard.panels.filter(({ type }) => type !== 'row')

    it('assigns each panel a unique id and its own place on the grid', () => {
      const ids = dashboard.panels.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      const cells = dashboard.panels.flatMap(({ title, gridPos: { h, w, x, y } }) => {
        expect(x + w, title).toBeLessThanOrEqual(24)
        return Array.from({ length: h * w }, (_, cell) => `${x + (cell % w)}:${y + Math.floor(cell / w)}`)
      })
      expect(new Set(cells).size).toBe(cells.length)
    })

    it('lets the reader choose the data source, which every panel and query uses', () => {
      expect(dashboard.templating.list[0]?.name).toBe('datasource')
      for (const { title, datasource, targets } of panels) {
        const uids = [datasource, ...targets.map((each) => each.datasource)].map((each) => each.uid)
        expect([...new Set(uids)], title).toEqual([DATASOURCE])
      }
    })

    it('restricts every query and annotation to the chosen namespace, which includes series without one', () => {
      const shown = [...panels.flatMap(({ targets }) => targets), ...dashboard.annotations.list]
      for (const { expr } of shown) expect(expr).toContain('namespace=~"$namespace"')
      expect(dashboard.templating.list.find(({ name }) => name === 'namespace')?.allValue).toBe('.*')
    })

    it('says in each panel what a bad value means and which runbook to open', () => {
      for (const { title, description } of panels) {
        expect(description, title).toMatch(/\*\*Bad:\*\* [\s\S]+\*\*Runbook:\*\* docs\/runbook\/[\w-]+\.md$/)
      }
    })

    it('marks deploys, drains and changes of the leader', () => {
      expect(dashboard.annotations.list.map(({ name }) => name)).toEqual(['Deploys', 'Drains', 'Leader changes'])
    })

    it('links to the other dashboards and to Bull Board', () => {
      const [others, board] = dashboard.links
      expect(others).toMatchObject({ type: 'dashboards', tags: dashboard.tags })
      expect(board?.url).toMatch(/^\$\{(\w+):raw\}$/)
      const variables = dashboard.templating.list.map(({ name }) => name)
      expect(variables).toContain(/\w+/.exec(board?.url ?? '')?.[0])
    })

    it('leads from a series to a dashboard that has its variable, and never to itself', () => {
      const urls = panels.flatMap(({ fieldConfig }) => fieldConfig.defaults.links.map(({ url }) => url))
      const variables = { 'bullpen-queue': 'queue', 'bullpen-task': 'task', 'bullpen-workers': 'worker' }
      for (const url of urls.filter((each) => each.startsWith('/d/'))) {
        const [, target = '', variable] = /^\/d\/([\w-]+)\?var-(\w+)=/.exec(url) ?? []
        expect(Object.entries(variables)).toContainEqual([target, variable])
        expect(target).not.toBe(uid)
      }
    })
  },
)

it('the code writes a file for each dashboard', () => {
  expect(Object.keys(files)).toEqual(Object.keys(DASHBOARDS).map((name) => `${name}.json`))
})
