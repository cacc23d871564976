// Defines the alerts about service-level objectives: how fast late starts use up the error budget, which is the share of tasks that may be
// late. The objectives are metrics, so the same two rules apply to every definition.
//
// Each alert compares two windows. The long one shows that enough of the budget is used up, and the short one that this is still going on.
// Source: https://sre.google/workbook/alerting-on-slos/#6-multiwindow-multi-burn-rate-alerts
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, largest, rate, type Window } from '../expressions.ts'

const OF_TASK = ['queue', 'task'] as const

/** The largest threshold. With an objective of 90%, for example, 14.4 times the budget would be more than all tasks. */
const ALMOST_ALL = 0.9

const lateShare = (window: string): string =>
  `${rate('bullpen_slo_late_tasks_total', window, ...OF_TASK)} / ${rate('bullpen_slo_tasks_total', window, ...OF_TASK)}`

/** The condition that the budget is used up at `burn` times the rate that would use up all of it in 30 days, in both windows. */
const burns = (burn: number, windows: readonly [long: Window, short: Window], atLeast: number): string => {
  const threshold = `clamp_max(${burn} * (1 - ${largest('bullpen_slo_objective_ratio', ...OF_TASK)}), ${ALMOST_ALL})`
  const [long, short] = windows
  // A few late tasks of a rare kind are a large share of all, but say little.
  return `${lateShare(long)} > ${threshold}
and ${lateShare(short)} > ${threshold}
and ${growth('bullpen_slo_late_tasks_total', long, ...OF_TASK)} >= ${atLeast}`
}

const late = '{{ $value | humanizePercentage }} late'

export const SLO_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenSloBurnsFast',
    // At this rate, 2% of the budget of 30 days are used up in an hour.
    expr: burns(14.4, ['1h', '5m'], 10),
    severity: 'critical',
    summary:
      'Within an hour, far more {{ $labels.task }} tasks of the queue {{ $labels.queue }} have started late than their SLO allows',
    figure: late,
    runbook: 'tasks-start-late.md',
  }),
  alert({
    name: 'BullpenSloBurnsSlowly',
    // At this rate, 5% of the budget of 30 days are used up in 6 hours.
    expr: burns(6, ['6h', '30m'], 5),
    severity: 'warning',
    summary:
      'Within 6 hours, more {{ $labels.task }} tasks of the queue {{ $labels.queue }} have started late than their SLO allows',
    figure: late,
    runbook: 'tasks-start-late.md',
  }),
]
