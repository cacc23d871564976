// Builds the reference page of the dashboards' panels.
import { ANNOTATIONS, DASHBOARDS, type Dashboard, metricsIn, type Panel } from '@bullpen/telemetry/dashboards'
import { UNSEEN_METRICS } from '../../../k8s/unseen-metrics.ts'
import { code, page, table } from './markdown.ts'
import { runbookLink } from './telemetry-pages.ts'

export function panelsPage(): string {
  return page(
    'Panels',
    `
The dashboards are in \`k8s/base/dashboards\` and are generated from \`packages/telemetry/src/dashboards\`. For how to load them, see
[Monitor with Prometheus](../how-to/monitoring.md#import-the-dashboards). Grafana adds the chosen namespace and job to each expression.

A test runs a real Prometheus with an API, a worker and a mixed load, and queries every expression on this page. Each one returns data, except
for those whose last column says why not. Of these, the test only checks that Prometheus accepts them.`,
    ...Object.entries<Dashboard>(DASHBOARDS).flatMap(([file, { title, description, sections }]) => [
      `## ${title.replace('Bullpen: ', '').replace(/^./, (first) => first.toUpperCase())}`,
      `${description} The file is \`${file}.json\`.`,
      table(
        ['panel', 'shows', 'bad', 'runbook', 'expression', 'without data in the test'],
        sections.flatMap(({ panels }) => panels.flatMap(panelRows)),
      ),
    ]),
    '## Annotations',
    'Every dashboard marks these events with vertical lines.',
    table(
      ['annotation', 'meaning', 'expression'],
      ANNOTATIONS.map(({ name, description, expr }) => [name, description, code(expr)]),
    ),
  )
}

/** Returns a row for each query. Only the first one describes the panel. */
function panelRows({ title, description, bad, runbook, queries }: Panel): readonly (readonly string[])[] {
  return queries.map(({ expr }, i) => {
    const about = i === 0 ? [title, description, bad, runbookLink(runbook)] : ['', '', '', '']
    return [...about, code(expr), unseen(expr)]
  })
}

const unseen = (expression: string): string =>
  metricsIn(expression).flatMap((metric) => UNSEEN_METRICS[metric] ?? [])[0] ?? ''
