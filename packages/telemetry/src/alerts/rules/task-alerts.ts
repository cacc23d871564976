// Defines the alerts about tasks and attempts: failures, slow attempts, dead tasks and dropped results.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, on, rate } from '../expressions.ts'

const OF_TASK = ['queue', 'task'] as const

/** The p99 of an hour that ended this long ago, if enough attempts have ended in it: that of a few is the slowest one. */
const slowest = (offset: '' | ' offset 1d'): string =>
  `(histogram_quantile(0.99, sum by (namespace, queue, task, le) (rate(bullpen_attempt_duration_seconds_bucket[1h]${offset})))
and ${on(...OF_TASK)} sum by (namespace, queue, task) (increase(bullpen_attempt_duration_seconds_count[1h]${offset})) >= 100)`

export const TASK_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenAttemptsFail',
    // A few failures of a rare task are a large share of its attempts, but say little.
    expr: `${rate('bullpen_attempt_failures_total', '10m', 'queue', 'task')} / ${rate('bullpen_attempts_ended_total', '10m', 'queue', 'task')} > 0.2
and ${growth('bullpen_attempt_failures_total', '10m', 'queue', 'task')} >= 5`,
    for: '10m',
    severity: 'warning',
    summary:
      'For 10 minutes, more than 20% of the attempts of the task {{ $labels.task }} in the queue {{ $labels.queue }} have failed, and at least 5 of them',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'attempts-fail.md',
  }),
  alert({
    name: 'BullpenAttemptsSlower',
    // The same hour of the day before, because load comes in daily waves. The quantile of attempts that take milliseconds depends on the
    // bounds of the buckets.
    expr: `${slowest('')} > 0.1
and ${on(...OF_TASK)} ${slowest('')} > 2 * ${slowest(' offset 1d')}`,
    for: '15m',
    severity: 'warning',
    summary:
      'The slowest 1% of the attempts of the task {{ $labels.task }} in the queue {{ $labels.queue }} have taken more than twice as long within an hour as at the same time the day before',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'attempts-slower.md',
  }),
  alert({
    name: 'BullpenDeadTasksGrow',
    expr: `${growth('bullpen_tasks_dead_total', '15m', 'queue')} >= 10`,
    severity: 'warning',
    summary: 'At least 10 tasks of the queue {{ $labels.queue }} have become dead within 15 minutes',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'dead-tasks.md',
  }),
  alert({
    name: 'BullpenPoisonTask',
    expr: `${growth('bullpen_tasks_dead_by_code_total{code=~"poison|process_lost"}', '15m', 'queue')} > 0`,
    severity: 'warning',
    summary: 'A task of the queue {{ $labels.queue }} is dead because its process died too often',
    runbook: 'poison-tasks.md',
  }),
  alert({
    name: 'BullpenResultsDropped',
    expr: `${growth('bullpen_commits_refused_total', '15m', 'queue')} >= 5`,
    severity: 'warning',
    summary:
      'At least 5 results of the queue {{ $labels.queue }} were dropped within 15 minutes, so these tasks run again',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'duplicates.md',
  }),
]
