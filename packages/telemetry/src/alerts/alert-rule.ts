// Defines an alert: a condition in PromQL, how long it must hold, how urgent it is, and the runbook page that says what to do.
import { metricsIn } from '../dashboards/promql.ts'

/** `critical`: tasks do not run or may be lost, so act now. `warning`: act today. `info`: look at it when you have time. */
export type Severity = 'critical' | 'warning' | 'info'

export interface AlertRule {
  readonly name: `Bullpen${string}`
  /** The condition, in PromQL. The alert fires for each series that the expression returns. */
  readonly expr: string
  /** How long the condition must hold before the alert fires, in Prometheus's notation. If omitted, it fires at once. */
  readonly for?: `${number}${'s' | 'm' | 'h'}`
  readonly severity: Severity
  /** What is wrong, in one line. `{{ $labels.queue }}` is replaced by the value of the label. */
  readonly summary: string
  /** The current figure, which follows the summary in parentheses. `$value` is what the expression returns. */
  readonly figure?: `${string}$value${string}`
  /** The page in `docs/runbook`. */
  readonly runbook: `${string}.md`
}

/** Creates an alert on Bullpen's own metrics. @throws RangeError if the expression uses a metric that is not in the metrics table. */
export function alert(rule: AlertRule): AlertRule {
  metricsIn(rule.expr)
  return rule
}
