// Builds the reference pages of the metrics, the alerts and the log fields.
import { COMMIT_REFUSALS } from '@bullpen/contract/internal'
import { LOG_FIELDS, METRICS, type MetricRow, metricType, RECORDED_METRICS } from '@bullpen/telemetry'
import { ALERTS } from '@bullpen/telemetry/alerts'
import { FAILURE_LINES_PER_SECOND } from '@bullpen/telemetry/internal'
import { code, codes, page, table } from './markdown.ts'

export function metricsPage(): string {
  return page(
    'Metrics',
    `
The API serves metrics at \`http://127.0.0.1:9464/metrics\`, on a separate port, and a worker serves them on the same port as its
probes. Both use the Prometheus text format. These ports do not require an API key, so do not expose them outside your network.
prom-client's process metrics (\`process_*\`, \`nodejs_*\`) are included.

If a queue has more than 500 task names, the additional names share the label value \`other\`. The label \`reason\` is one of the
[reasons why an attempt ended](states.md#why-an-attempt-ended), or \`declared\` for a \`TaskError\`. In
\`bullpen_commits_refused_total\`, \`reason\` is one of
${codes(COMMIT_REFUSALS)}.

The start of an attempt is counted immediately. All other changes to attempts and tasks are counted only after Redis has confirmed them.
Each started attempt is later counted either as ended or as a refused commit, unless a drain abandoned it, Redis never responded to its commit, or its process died.

Prometheus's \`rate()\` and \`increase()\` do not see the event with which a series appears. The counters of the type _counter from 0_
therefore begin at 0 when a process starts, for the tasks and queues of an API's catalogue, or of the queues that a worker serves. States,
verdicts, reasons and codes that are not usual, such as the code of a task's own error, still appear with their first event, and so do the
series of the other counters with labels. Alerts that count events include it. A worker publishes 19 such series for each task.`,
    table(
      ['metric', 'type', 'labels', 'meaning'],
      Object.entries<MetricRow>(METRICS).map(([name, row]) => {
        const type = metricType(name, row)
        return [code(name), row.fromZero ? `${type} from 0` : type, codes(row.labels), row.help]
      }),
    ),
    `
## Recorded series

Prometheus records the following series every 15 s if it has loaded \`k8s/alerts/bullpen.rules.yaml\`. Autoscalers read them: see
[Autoscaling](../explanation/autoscaling.md).`,
    table(
      ['series', 'labels', 'meaning'],
      Object.entries(RECORDED_METRICS).map(([name, { labels, help }]) => [code(name), codes(labels), help]),
    ),
    `
For the metrics to check for each symptom, see [the runbook](../README.md#runbook). The Grafana dashboards in \`k8s/base/dashboards\` are
generated from \`packages/telemetry/src/dashboards\`. For the alerts on these metrics, see [Alerts](alerts.md).`,
  )
}

export function logFieldsPage(): string {
  return page(
    'Log fields',
    `
The API and the workers write one JSON object per line to standard output. Each object contains \`level\` as a word, \`time\` in RFC 3339
format, \`name\` (the program's name), \`msg\`, and any of the fields below. A field has the same meaning in every line.

Every attempt gets one line when it starts and one when it ends. Both have the fields \`task\`, \`id\`, \`queue\`, \`fencingToken\`,
\`attempt\` and \`correlationId\`. A dead task or a panic is logged at level \`error\`, and a retry at \`warn\`. The start and the end of a
long attempt are logged at \`info\`, and the start and the success of a short one at \`debug\`. HTTP responses with a status of 500 or above are
logged at \`warn\`, those from 400 to 499 at \`info\`, and all others at \`debug\`.

Instead of the lines of short attempts, a worker writes one line per queue and task at \`info\` every minute in which such attempts have
ended (\`BULLPEN_WORKER_LOG_SUMMARY_INTERVAL\`), with \`verdicts\`, \`meanMs\`, \`maxMs\` and \`overMs\`. Such a line takes about 250 bytes,
whatever the number of attempts, so 20 kinds of short tasks write at most about 7 MB per day and worker. At \`debug\`, the two lines of a short
attempt take about 640 bytes together, so 1,000 tasks per second write 55 GB a day.

If many short attempts of a task fail, for example because a service is down, only the first ${FAILURE_LINES_PER_SECOND} of each second write a line at
\`warn\` (or at \`error\`, if their tasks are dead). The lines of the others are at \`debug\`, and \`verdicts\` counts all of them.

\`bullpen log-level debug --for 10m\` changes the level of all workers and API processes for ten minutes, including the lines of
handlers that are already running, and that of processes that start meanwhile. Without a level, the command shows the level that is
in force.

Inputs, outputs, API keys, cookies and query strings are never logged. The messages of handlers' errors and the lines that handlers write
are logged, but without the values of the input's [sensitive fields](../how-to/encryption.md#keep-values-out-of-logs-and-errors).`,
    table(
      ['field', 'meaning'],
      Object.entries(LOG_FIELDS).map(([name, meaning]) => [code(name), meaning]),
    ),
  )
}

const ALERT_COLUMNS = ['alert', 'severity', 'fires after', 'meaning', 'runbook']

export function alertsPage(): string {
  return page(
    'Alerts',
    `
The alerts are in \`k8s/alerts/bullpen.rules.yaml\`, which Prometheus reads if its \`rule_files\` contain the file. For the Prometheus
operator, \`k8s/overlays/prometheus-operator\` contains the same alerts as a PrometheusRule. Each alert has the label \`severity\`:

- \`critical\`: tasks do not run or may be lost, so act now.
- \`warning\`: act today.
- \`info\`: look at it when you have time.

The annotation \`summary\` says what is wrong, followed by the current figure if there is one. The annotation \`runbook\` is the path of a
page in this repository. If one Prometheus scrapes several installations, the label \`namespace\`, which pod discovery on Kubernetes adds,
keeps them apart. The alerts are generated from \`packages/telemetry/src/alerts\`.`,
    table(
      ALERT_COLUMNS,
      ALERTS.map(({ name, severity, for: holds = 'at once', summary, runbook }) => [
        code(name),
        severity,
        holds,
        withPlaceholders(summary),
        runbookLink(runbook),
      ]),
    ),
    `
## Expressions

Each alert is tested with \`promtool test rules\`: with series for which it fires, and with series for which it does not. Another test runs a
real Prometheus with the alerts, an API and a worker. Each metric of each expression exists there, and Prometheus evaluates every alert
without an error.`,
    table(
      ['alert', 'expression'],
      ALERTS.map(({ name, expr }) => [code(name), code(oneLine(expr))]),
    ),
  )
}

/** Returns a link from a reference page to a page of the runbook. */
export const runbookLink = (runbook: string): string => `[${runbook.replace('.md', '')}](../runbook/${runbook})`

const oneLine = (expression: string): string => expression.replaceAll(/\s*\n\s*/g, ' ')

/** Returns a summary with the names of its labels in place of their values. */
const withPlaceholders = (summary: string): string =>
  summary.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => `_${label}_`)
