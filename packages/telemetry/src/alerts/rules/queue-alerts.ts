// Defines the alerts about queues: their backlog, their schedules, their outbox and their counts.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, largest, on, sum } from '../expressions.ts'

const WAITING = largest('bullpen_queue_tasks{status="waiting"}', 'queue')
const BUSY = sum('bullpen_pool_slots_busy', 'queue')
const SLOTS = sum('bullpen_pool_slots', 'queue')

export const QUEUE_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenQueueStuck',
    // If every slot is busy, the queue is not stuck but saturated, for example with tasks that take an hour.
    expr: `${WAITING} > 0
unless ${on('queue')} ${growth('bullpen_attempts_started_total', '5m', 'queue')} > 0
unless ${on('queue')} ${BUSY} == ${SLOTS} > 0`,
    for: '5m',
    severity: 'critical',
    summary:
      'Tasks of the queue {{ $labels.queue }} are waiting, but none has started for 5 minutes although slots are free',
    runbook: 'nothing-is-running.md',
  }),
  alert({
    name: 'BullpenScheduleInTrouble',
    expr: `${largest('bullpen_troubled_schedules', 'queue', 'trouble')} > 0`,
    for: '5m',
    severity: 'warning',
    summary: 'A schedule of the queue {{ $labels.queue }} is in trouble: {{ $labels.trouble }}',
    runbook: 'schedule-in-trouble.md',
  }),
  alert({
    name: 'BullpenOutboxDelayed',
    expr: `${largest('bullpen_outbox_oldest_seconds', 'queue')} > 300`,
    severity: 'warning',
    summary: 'Follow-up tasks of the queue {{ $labels.queue }} have been in its outbox for more than 5 minutes',
    runbook: 'outbox-grows.md',
  }),
  alert({
    name: 'BullpenUnaccountedTasks',
    expr: `${largest('abs(bullpen_unaccounted_tasks)', 'queue')} > 0`,
    for: '15m',
    severity: 'warning',
    summary: 'The queue {{ $labels.queue }} has accepted tasks that have no status',
    runbook: 'unaccounted-tasks.md',
  }),
]
