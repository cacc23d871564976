// Tests the dashboards as data: their queries, and what their panels say.
import { existsSync } from 'node:fs'
import { ATTEMPT_STATE_LABELS, POOL_STATE_LABELS, SLOT_STATE_LABELS } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { METRICS } from '../metrics/metrics-table.ts'
import { ANNOTATIONS, COMMON_VARIABLES, DASHBOARDS, type Dashboard, metricsIn, scoped } from './index.ts'

const dashboards: readonly Dashboard[] = Object.values(DASHBOARDS)
const panels = dashboards.flatMap(({ sections }) => sections.flatMap((section) => section.panels))
const annotated = ANNOTATIONS.map(({ expr }) => expr)
const expressions = [...panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)), ...annotated]

/** Prometheus itself publishes this series for each alert. */
const ALERT_SERIES = 'ALERTS{'

const OPERATORS = new Set(['and', 'or', 'unless', 'bool', 'offset'])

describe('the panels', () => {
  it('say what they show, what a bad value means, and which runbook to open', () => {
    for (const { title, description, bad, runbook, queries } of panels) {
      expect(description, title).toMatch(/\.$/)
      expect(bad, title).toMatch(/\.$/)
      const page = new URL(`../../../../docs/runbook/${runbook}`, import.meta.url)
      expect(existsSync(page), `${title}: ${runbook}`).toBe(true)
      expect(queries, title).not.toEqual([])
    }
  })

  it('have titles of their own', () => {
    const titles = panels.map(({ title }) => title)
    expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([])
  })

  it('show every metric that is published', () => {
    const read = expressions.flatMap(metricsIn).map((name) => name.replace(/_(bucket|sum|count)$/, ''))
    expect(Object.keys(METRICS).filter((name) => !read.includes(name))).toEqual([])
  })

  it('read only metrics that are published, and alerts', () => {
    for (const expression of expressions) {
      if (!expression.includes(ALERT_SERIES)) expect(metricsIn(expression), expression).not.toEqual([])
    }
  })

  it('apply rate() only to counters', () => {
    for (const expression of expressions) {
      for (const [, rated = ''] of expression.matchAll(/\brate\((\w+)/g)) expect(rated).toMatch(/_(total|bucket)$/)
      for (const counter of expression.match(/\w+_(?:total|bucket)\b/g) ?? []) {
        expect(expression).toContain(`rate(${counter}`)
      }
    }
  })

  it('read only the series of the installation that the reader has chosen', () => {
    for (const expression of expressions.map(scoped)) {
      // Without ranges, strings and the labels of clauses, only functions, operators, numbers and series are left.
      const names = expression
        .replace(/\[[^\]]*\]/g, '')
        .replace(/"[^"]*"/g, '""')
        .replace(/\b(?:by|on|without|ignoring|group_left|group_right) \([^)]*\)/g, '')
        .matchAll(/\b([a-zA-Z_:][\w:]*)\b(?!\s*\(|[\w=~!])(\{[^}]*\})?/g)
      for (const [selector, name = ''] of names) {
        if (!OPERATORS.has(name)) expect(selector, expression).toContain('namespace=~')
      }
    }
    expect(COMMON_VARIABLES).toContainEqual(expect.objectContaining({ name: 'namespace', multi: false }))
  })

  it('name in a legend only labels that the query keeps', () => {
    for (const { title, queries } of panels) {
      for (const { expr, legend } of queries) {
        const kept = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(', '))
        // Without an aggregation, a series has the labels of its metric and of its process.
        const own = kept.length === 0 ? ['instance'] : kept
        for (const [, label] of legend.matchAll(/\{\{(\w+)\}\}/g)) expect(own, `${title}: ${legend}`).toContain(label)
      }
    }
  })

  it('show the labels of states in place of their names', () => {
    const byState = panels.filter(({ queries }) => queries.some(({ legend }) => legend === '{{state}}'))
    expect(byState.length).toBeGreaterThan(0)
    for (const { names } of byState) {
      expect([POOL_STATE_LABELS, SLOT_STATE_LABELS, ATTEMPT_STATE_LABELS]).toContain(names)
    }
  })
})

describe.each(Object.entries<Dashboard>(DASHBOARDS))('the dashboard %s', (_, { variables, sections }) => {
  it('uses only variables that it has, and uses all of them', () => {
    const used = sections
      .flatMap((section) => section.panels.flatMap(({ queries }) => queries))
      .flatMap(({ expr }) => scoped(expr).match(/(?<=\$)[a-z]+/g) ?? [])
    const names = [...COMMON_VARIABLES, ...variables].map(({ name }) => name)
    expect([...new Set(used)].toSorted()).toEqual(names.toSorted())
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

describe('scoped', () => {
  it('adds the namespace and the job to each metric, and to nothing else', () => {
    const scope = 'namespace=~"$namespace", job=~"$job"'
    expect(scoped('max(bullpen_leader offset 1m) or rate(process_cpu_seconds_total{job="bullpen_x"}[5m])')).toBe(
      `max(bullpen_leader{${scope}} offset 1m) or rate(process_cpu_seconds_total{${scope}, job="bullpen_x"}[5m])`,
    )
  })

  it('adds only the namespace to a recorded series, which does not have a job', () => {
    expect(scoped('bullpen:queue_busy_workers')).toBe('bullpen:queue_busy_workers{namespace=~"$namespace"}')
  })
})
