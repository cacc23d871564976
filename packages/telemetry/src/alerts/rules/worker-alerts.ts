// Defines the alerts about workers: their utilisation, drains, restarts, handlers, event loops and clocks.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, IS_OURS, largest, on, sum } from '../expressions.ts'

/** The mean share of busy slots within the window. A single scrape misses short tasks. */
const utilisation = (window: string): string =>
  `${sum(`avg_over_time(bullpen_pool_slots_busy[${window}])`, 'queue')} / ${sum(`avg_over_time(bullpen_pool_slots[${window}])`, 'queue')}`

export const WORKER_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenSlotsSaturated',
    expr: `${utilisation('10m')} > 0.9`,
    for: '10m',
    severity: 'warning',
    summary: 'More than 90% of the slots of the queue {{ $labels.queue }} have been busy for 10 minutes',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'backlog-grows.md',
  }),
  alert({
    name: 'BullpenSlotsIdle',
    // Without slots half an hour ago, the mean says nothing about that time. If no task has started since the workers did, the queue may be
    // one that is not used yet, and nothing has changed.
    expr: `${utilisation('30m')} < 0.1
and ${on('queue')} ${sum('bullpen_pool_slots offset 30m', 'queue')} > 0
and ${on('queue')} ${sum('bullpen_attempts_started_total', 'queue')} > 0`,
    for: '30m',
    severity: 'info',
    summary: 'Less than 10% of the slots of the queue {{ $labels.queue }} have been busy for an hour',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'slots-idle.md',
  }),
  alert({
    name: 'BullpenDrainOverrun',
    // A drain that still has time is not late, however long its time limit is. A worker that drains on SIGTERM ends soon after
    // its limit, or is killed; what it leaves behind is recovered, and BullpenDrainAbandonsTasks fires.
    expr: `${sum('bullpen_pool_state{state="SHUTTING_DOWN"}', 'instance', 'queue')} > 0
unless ${on('instance', 'queue')} ${largest('bullpen_drain_deadline_timestamp_seconds', 'instance', 'queue')} > time()`,
    for: '5m',
    severity: 'warning',
    summary:
      'The worker {{ $labels.instance }} has been draining its pool of the queue {{ $labels.queue }} for 5 minutes without a time limit or past it',
    runbook: 'drain-stuck.md',
  }),
  alert({
    name: 'BullpenDrainAbandonsTasks',
    // A drain that abandons tasks lasts for all of its time limit, so that scrapes see it.
    expr: `${largest('increase(bullpen_queue_tasks_recovered_total[10m])', 'queue')} > 0
and ${on('queue')} ${largest('max_over_time(bullpen_pool_state{state="SHUTTING_DOWN"}[10m])', 'queue')} == 1`,
    severity: 'warning',
    summary:
      'While workers drained, running tasks of the queue {{ $labels.queue }} had to be recovered: the workers were killed, or ended without them',
    figure: '{{ printf `%.0f` $value }} tasks',
    runbook: 'drain-stuck.md',
  }),
  alert({
    name: 'BullpenProcessRestarts',
    // A restart during a deploy gives a pod another address, or happens once.
    expr: `${largest(`changes(process_start_time_seconds[15m]) and ${IS_OURS}`, 'instance')} >= 3`,
    severity: 'warning',
    summary: 'The process {{ $labels.instance }} has restarted at least 3 times within 15 minutes',
    figure: '{{ $value }} restarts',
    runbook: 'worker-restarts.md',
  }),
  alert({
    name: 'BullpenTasksRecovered',
    // The number of tasks depends on the slots of the lost workers, so the alert counts how often tasks were recovered. Those of a single
    // worker may be recovered in two scrapes.
    expr: `${largest('changes(bullpen_queue_tasks_recovered_total[15m])', 'queue')} >= 3`,
    severity: 'warning',
    summary:
      'Within 15 minutes, tasks of the queue {{ $labels.queue }} were recovered at least 3 times from workers that had died or had not renewed their locks',
    figure: '{{ $value }} times',
    runbook: 'worker-restarts.md',
  }),
  alert({
    name: 'BullpenStuckHandlers',
    expr: `${sum('bullpen_stuck_handlers', 'instance', 'queue')} > 0`,
    for: '5m',
    severity: 'warning',
    summary:
      'For 5 minutes, handlers of the queue {{ $labels.queue }} on the worker {{ $labels.instance }} have kept running although their attempts have ended',
    figure: '{{ $value }}',
    runbook: 'stuck-handlers.md',
  }),
  alert({
    name: 'BullpenEventLoopStalled',
    expr: `${growth('bullpen_event_loop_stalls_total', '15m', 'instance', 'task')} >= 3`,
    severity: 'warning',
    // The label is empty if no task blocked the event loop.
    summary:
      'The event loop of the worker {{ $labels.instance }} was blocked at least 3 times within 15 minutes by the task {{ $labels.task }}',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'event-loop-stalled.md',
  }),
  alert({
    name: 'BullpenLockThreadFails',
    // A thread that was replaced once has done no harm.
    expr: `${growth('bullpen_lock_threads_restarted_total', '15m', 'instance')} >= 3`,
    severity: 'warning',
    summary:
      'The thread that renews the locks of the worker {{ $labels.instance }} ended or could not be started at least 3 times within 15 minutes',
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'duplicates.md',
  }),
  alert({
    name: 'BullpenClockSkew',
    expr: `${largest('abs(bullpen_clock_skew_seconds)', 'instance')} > 0.5`,
    for: '10m',
    severity: 'warning',
    summary: "For 10 minutes, the clock of {{ $labels.instance }} has differed from Redis's clock by more than 0.5 s",
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'clock-skew.md',
  }),
]
