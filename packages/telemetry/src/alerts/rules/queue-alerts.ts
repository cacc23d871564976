// Defines the alerts about queues: their backlog, their limits, their schedules, their outbox and their counts.
//
// A backlog alone does not say what is wrong. If producers are slowed down while tasks start or all slots are busy, the workers
// do not keep up (backpressure). If tasks wait that could start, and none starts although slots are free, the workers are
// stalled (stuck), whether the queue is full or not. If every waiting task is blocked, nothing is wrong with the workers
// (limited). If there are no slots, no worker serves the queue, or Prometheus does not scrape those that do. A queue that a
// command holds starts nothing on purpose.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, largest, on, rate, sum } from '../expressions.ts'

const WAITING = largest('bullpen_queue_tasks{status="waiting"}', 'queue')
const ACTIVE = largest('bullpen_queue_tasks{status="active"}', 'queue')
const BLOCKED = largest('bullpen_queue_blocked_tasks', 'queue')
const OLDEST_BLOCKED = largest('bullpen_queue_oldest_blocked_seconds', 'queue')
const NEXT = largest('bullpen_queue_next_task_seconds', 'queue')
const BUSY = sum('bullpen_pool_slots_busy', 'queue')
const SLOTS = sum('bullpen_pool_slots', 'queue')
/** The pools that fetch tasks. */
const BUSY_OF_RUNNING = sum('bullpen_pool_slots_busy unless bullpen_pool_paused == 1', 'queue')
const SLOTS_OF_RUNNING = sum('bullpen_pool_slots unless bullpen_pool_paused == 1', 'queue')
const STARTED = growth('bullpen_attempts_started_total', '5m', 'queue')
/** Every slot is busy, for example with tasks that take an hour, so none starts although nothing is wrong with the workers. */
const SATURATED = `${BUSY} == ${SLOTS} > 0`
/** A command has paused or drained the queue, or each of its pools. */
const HELD = `(
  ${largest('bullpen_queue_paused', 'queue')} == 1
  or ${largest('bullpen_queue_draining', 'queue')} == 1
  or (${SLOTS} > 0 unless ${on('queue')} ${SLOTS_OF_RUNNING} > 0)
)`

const BREAKER_NOT_CLOSED = largest('bullpen_breaker_state{state!="closed"}', 'queue', 'service')

const UNSTARTED = largest('sum without (status) (bullpen_queue_tasks{status=~"waiting|scheduled|retrying"})', 'queue')
const NEARLY_FULL = `${UNSTARTED} / ${largest('bullpen_queue_limit_tasks', 'queue')} > 0.8
or ${largest('bullpen_queue_bytes', 'queue')} / ${largest('bullpen_queue_limit_bytes', 'queue')} > 0.8`

/** The quantile of a few enqueues is that of the slowest one. */
const ENQUEUE_SLOW = `histogram_quantile(0.99, ${rate('bullpen_enqueue_duration_seconds_bucket', '5m', 'queue', 'le')}) > 1
and ${growth('bullpen_enqueue_duration_seconds_count', '5m', 'queue')} >= 5`
const REFUSED = `${growth('bullpen_tasks_refused_total{limit=~"maxTasks|maxBytes|maxAge"}', '5m', 'queue')} > 0`

export const QUEUE_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenQueueStuck',
    expr: `${WAITING} > 0
and ${on('queue')} ${BUSY_OF_RUNNING} < ${SLOTS_OF_RUNNING}
unless ${on('queue')} ${STARTED} > 0
unless ${on('queue')} ${WAITING} <= ${BLOCKED}
unless ${on('queue')} ${HELD}`,
    for: '5m',
    severity: 'critical',
    summary:
      'No task of the queue {{ $labels.queue }} has started for 5 minutes, although tasks that no limit holds are waiting and slots are free',
    figure: '{{ $value }} waiting',
    runbook: 'nothing-is-running.md',
  }),
  alert({
    name: 'BullpenQueueUnserved',
    // Active tasks show that workers which Prometheus does not scrape serve the queue, such as those of plain BullMQ. If
    // every task is blocked, an autoscaler may have removed the workers.
    expr: `${WAITING} > 0
unless ${on('queue')} ${SLOTS} > 0
unless ${on('queue')} ${ACTIVE} > 0
unless ${on('queue')} ${WAITING} <= ${BLOCKED}
unless ${on('queue')} ${HELD}`,
    for: '5m',
    severity: 'critical',
    summary:
      'For 5 minutes, tasks of the queue {{ $labels.queue }} have been waiting, none has been active, and Prometheus has not scraped any worker that serves the queue',
    figure: '{{ $value }} waiting',
    runbook: 'nothing-is-running.md',
  }),
  alert({
    name: 'BullpenBackpressure',
    // Callers are blocked or refused only while the queue is full.
    expr: `(
  ${sum('bullpen_blocked_requests', 'queue')} > 0
  or ${REFUSED}
  or (${ENQUEUE_SLOW}
  and ${on('queue')} (${NEARLY_FULL}))
)
and ${on('queue')} (
  ${STARTED} > 0
  or ${SATURATED}
)`,
    for: '5m',
    severity: 'warning',
    summary:
      'Producers of the queue {{ $labels.queue }} have been blocked or refused for 5 minutes, because its tasks start too slowly',
    runbook: 'producers-slowed.md',
  }),
  alert({
    name: 'BullpenQueueNearlyFull',
    expr: NEARLY_FULL,
    for: '5m',
    severity: 'warning',
    summary:
      'The queue {{ $labels.queue }} has been full or nearly full for 5 minutes: it uses more than 80% of its limit of tasks or bytes',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'producers-slowed.md',
  }),
  alert({
    name: 'BullpenEnqueueSlow',
    expr: `${ENQUEUE_SLOW}
unless ${on('queue')} (${NEARLY_FULL})`,
    for: '5m',
    severity: 'warning',
    summary:
      'Enqueueing a task in the queue {{ $labels.queue }} takes more than a second at p99, although the queue is not full',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'enqueue-slow.md',
  }),
  alert({
    name: 'BullpenOldestTaskWaits',
    expr: `${NEXT} > 300
unless ${on('queue')} ${HELD}`,
    for: '5m',
    severity: 'warning',
    summary: 'The next task of the queue {{ $labels.queue }} has been waiting for more than 5 minutes',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'backlog-grows.md',
  }),
  alert({
    name: 'BullpenQueueLimited',
    // A task that waits for its turn or behind others with a higher priority is not blocked. Open breakers have an alert
    // of their own.
    expr: `${OLDEST_BLOCKED} > 900
unless ${on('queue')} ${HELD}
unless ${on('queue')} ${largest('bullpen_breaker_state{state!="closed"}', 'queue')} == 1`,
    for: '5m',
    severity: 'warning',
    summary:
      'The oldest blocked task of the queue {{ $labels.queue }} has been ready for more than 15 minutes: a limit, permits or a throttle keep it from starting',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'nothing-is-running.md',
  }),
  alert({
    name: 'BullpenQueuePaused',
    expr: `${WAITING} > 0
and ${on('queue')} ${HELD}`,
    for: '1h',
    severity: 'info',
    summary:
      'A command has held the queue {{ $labels.queue }} for an hour, and tasks are waiting: it is paused or drained, or each of its pools is paused',
    figure: '{{ $value }} waiting',
    runbook: 'nothing-is-running.md',
  }),
  alert({
    name: 'BullpenBreakerOpen',
    expr: `${BREAKER_NOT_CLOSED} == 1`,
    for: '5m',
    severity: 'warning',
    summary:
      'The circuit breaker {{ $labels.service }} of the queue {{ $labels.queue }} has been open or half-open for 5 minutes, so the tasks that depend on the service wait',
    runbook: 'attempts-fail.md',
  }),
  alert({
    name: 'BullpenScheduleInTrouble',
    expr: `${largest('bullpen_troubled_schedules', 'queue', 'trouble')} > 0`,
    for: '5m',
    severity: 'warning',
    summary: 'A schedule of the queue {{ $labels.queue }} has been in trouble for 5 minutes: {{ $labels.trouble }}',
    runbook: 'schedule-in-trouble.md',
  }),
  alert({
    name: 'BullpenOutboxDelayed',
    expr: `${largest('bullpen_outbox_oldest_seconds', 'queue')} > 300`,
    severity: 'warning',
    summary: 'Follow-up tasks of the queue {{ $labels.queue }} have been in its outbox for more than 5 minutes',
    figure: '{{ $value | humanizeDuration }}',
    runbook: 'outbox-grows.md',
  }),
  alert({
    name: 'BullpenUnaccountedTasks',
    expr: `${largest('abs(bullpen_unaccounted_tasks)', 'queue')} > 0`,
    for: '15m',
    severity: 'warning',
    summary:
      'For 15 minutes, the queue {{ $labels.queue }} has had more or fewer tasks than it has accepted and not removed',
    figure: '{{ $value }}',
    runbook: 'unaccounted-tasks.md',
  }),
  alert({
    name: 'BullpenUnattachedWorkers',
    expr: `${largest('bullpen_unattached_workers', 'queue')} > 0`,
    for: '5m',
    severity: 'warning',
    summary: "For 5 minutes, BullMQ Workers without Bullpen's backend have used the queue {{ $labels.queue }}",
    figure: '{{ $value }}',
    runbook: 'unaccounted-tasks.md',
  }),
]
