import { existsSync, readFileSync } from 'node:fs'
import { ATTEMPT_STATE_LABELS, POOL_STATE_LABELS } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { DASHBOARDS, dashboardFile, metricsIn } from './index.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly fieldConfig: {
    readonly overrides: readonly {
      readonly matcher: { readonly options: string }
      readonly properties: readonly { readonly value: string }[]
    }[]
  }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

describe.each(Object.entries(DASHBOARDS))('the dashboard %s', (name, dashboard) => {
  const panels = dashboard.panels as readonly Panel[]
  const expressions = panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => expr))

  it('is committed exactly as the code builds it (if this fails: npm run dashboards -w packages/telemetry)', () => {
    const committed = readFileSync(new URL(`../../../../k8s/base/dashboards/${name}.json`, import.meta.url), 'utf8')
    expect(committed).toBe(dashboardFile(dashboard))
  })

  it('names runbooks that exist, in all but a few panels', () => {
    const runbooks = panels.flatMap(({ description = '' }) => /docs\/runbook\/[\w-]+\.md$/.exec(description) ?? [])
    for (const runbook of runbooks)
      expect(existsSync(new URL(`../../../../${runbook}`, import.meta.url)), runbook).toBe(true)
    expect(runbooks.length).toBeGreaterThan(0.7 * panels.filter(({ type }) => type !== 'row').length)
  })

  it('reads only metrics that are published', () => {
    expect(expressions.length).toBeGreaterThan(0)
    for (const expression of expressions) expect(metricsIn(expression), expression).not.toEqual([])
  })

  it('applies rate() only to counters', () => {
    for (const expression of expressions) {
      for (const [, rated = ''] of expression.matchAll(/\brate\((\w+)/g)) expect(rated).toMatch(/_(total|bucket)$/)
      for (const counter of expression.match(/\w+_(?:total|bucket)\b/g) ?? []) {
        expect(expression).toContain(`rate(${counter}`)
      }
    }
  })

  it('balances its brackets', () => {
    for (const expression of expressions) {
      for (const [open, close] of ['()', '[]', '{}'].map((pair) => [...pair])) {
        expect(expression.split(open ?? '').length, expression).toBe(expression.split(close ?? '').length)
      }
    }
  })

  it('assigns each panel a unique id and its own place', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) => {
      expect(x + w).toBeLessThanOrEqual(24)
      return Array.from({ length: h * w }, (_, cell) => `${x + (cell % w)}:${y + Math.floor(cell / w)}`)
    })
    expect(new Set(cells).size).toBe(cells.length)
  })

  it('shows the labels of states in place of their names', () => {
    const byState = panels.filter(({ targets = [] }) => targets.some((target) => target.legendFormat === '{{state}}'))
    expect(byState.length).toBeGreaterThan(0)
    for (const { fieldConfig } of byState) {
      const shown = fieldConfig.overrides.map(({ matcher, properties }) => [matcher.options, properties[0]?.value])
      expect([POOL_STATE_LABELS, ATTEMPT_STATE_LABELS]).toContainEqual(Object.fromEntries(shown))
    }
  })

  it('lets the reader choose data source, queue and task', () => {
    expect(dashboard.templating.list.map((variable) => variable.name)).toEqual(['datasource', 'queue', 'task'])
  })
})

describe('metricsIn', () => {
  it('finds each metric once, and ignores label values', () => {
    expect(
      metricsIn('sum(rate(bullpen_tasks_enqueued_total{queue="process_x"}[5m])) / sum(bullpen_queue_tasks)'),
    ).toEqual(['bullpen_tasks_enqueued_total', 'bullpen_queue_tasks'])
  })

  it('rejects a metric that is not published, and names the nearest one', () => {
    expect(() => metricsIn('rate(bullpen_task_enqueued_total[5m])')).toThrow(
      /did you mean bullpen_tasks_enqueued_total/,
    )
    expect(() => metricsIn('bullpen_task_wait_seconds')).toThrow(RangeError)
  })
})
