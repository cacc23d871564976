// Defines the series by which autoscalers decide how many workers a queue needs. Prometheus records them.
//
// None of them depends on the present number of workers: an autoscaler divides each of its signals by the target per worker,
// and the result is the number of workers that it wants. If the number of workers were part of the signal, each change of it
// would change the signal as well.
//
// Both signals are needed. The backlog says how many workers are missing, but it is 0 as soon as there are enough workers. If it were the
// only signal, the autoscaler would then remove workers that are busy, until there is a backlog again.
import { growth, largest, on, smallest, sum } from '../alerts/expressions.ts'
import { metricsIn } from '../dashboards/promql.ts'
import type { RecordedName } from '../metrics/recorded-metrics.ts'

export interface RecordingRule {
  readonly record: RecordedName
  /** In PromQL. It may use the series that the rules before it record. */
  readonly expr: string
}

/** How many seconds of backlog each worker may have if no task has an SLO. A new pod takes about as long until it runs its first task. */
export const DEFAULT_BACKLOG_SECONDS = 30

/** How much of `startWithin` a worker may spend on the backlog. The rest is for noticing a burst and for starting pods. */
const BACKLOG_SHARE_OF_SLO = 0.5

/** The least of these seconds. With less, a handful of tasks that happen to be waiting during a scrape would add workers. */
const LEAST_BACKLOG_SECONDS = 5

/**
 * The target of an autoscaler for `bullpen:queue_backlog_workers`. It is the same for all queues, because the series already contains what
 * differs between them.
 */
export const BACKLOG_SHARE = 1

/** The share of its slots that an autoscaler wants each worker to use. The rest absorbs what the autoscaler has not seen yet. */
export const BUSY_SHARE = 0.8

/** How often Prometheus records the series, which is also how often the autoscaler of Kubernetes reads them. */
export const SCALING_INTERVAL = '15s'

const QUEUE = 'queue'
const WAITING = largest('bullpen_queue_tasks{status="waiting"}', QUEUE)
const BLOCKED = largest('bullpen_queue_blocked_tasks', QUEUE)
/** A value for every queue, for what is not known of a queue yet. */
const always = (value: number): string => (value === 0 ? `${WAITING} * 0` : `${WAITING} * 0 + ${value}`)

/** The waiting tasks that a new worker could start. The two numbers of a scrape are not from the same moment. */
const STARTABLE = `clamp_min(${WAITING} - ${on(QUEUE)} (${BLOCKED} or ${always(0)}), 0)`

const RAN_SECONDS = 'bullpen_attempt_duration_seconds_sum'
const RAN = 'bullpen_attempt_duration_seconds_count'

const IS_NOT_PAUSED = `(${largest('bullpen_queue_paused', QUEUE)} == bool 0)`
/** 0 if a command drains or has drained the queue. Its workers may be gone, and new ones would start nothing. */
const IS_NOT_DRAINING = `((${largest('bullpen_queue_draining', QUEUE)} or ${always(0)}) == bool 0)`
/** 0 if every pool of the queue was drained or has failed. A queue without any worker has no such pool. */
const IS_SERVED = `(${largest('bullpen_pool_state{state=~"NEW|BG_RUNNING|ONLINE_RUNNING"}', QUEUE)} or ${always(1)})`

const average = (selector: string): string => `avg by (namespace, ${QUEUE}) (${selector})`

export const SCALING_RULES: readonly RecordingRule[] = [
  rule(
    'bullpen:queue_run_seconds',
    `${growth(RAN_SECONDS, '10m', QUEUE)} / (${growth(RAN, '10m', QUEUE)} > 0)
or ${sum(RAN_SECONDS, QUEUE)} / ${sum(RAN, QUEUE)}
or ${average('bullpen_task_expected_seconds')}
or ${always(1)}`,
  ),
  rule(
    'bullpen:queue_slots_per_worker',
    `${average('bullpen_pool_slots > 0')}
or ${average('last_over_time(bullpen_pool_slots[1d]) > 0')}
or ${always(1)}`,
  ),
  rule(
    'bullpen:queue_backlog_seconds',
    `${STARTABLE}
* ${on(QUEUE)} ${IS_NOT_PAUSED}
* ${on(QUEUE)} ${IS_NOT_DRAINING}
* ${on(QUEUE)} ${IS_SERVED}
* ${on(QUEUE)} bullpen:queue_run_seconds
/ ${on(QUEUE)} bullpen:queue_slots_per_worker`,
  ),
  rule(
    'bullpen:queue_backlog_target_seconds',
    `clamp_min(${smallest('bullpen_slo_start_within_seconds', QUEUE)} * ${BACKLOG_SHARE_OF_SLO}, ${LEAST_BACKLOG_SECONDS})
or ${always(DEFAULT_BACKLOG_SECONDS)}`,
  ),
  rule(
    'bullpen:queue_backlog_workers',
    `bullpen:queue_backlog_seconds
/ ${on(QUEUE)} bullpen:queue_backlog_target_seconds`,
  ),
  rule(
    'bullpen:queue_busy_workers',
    `avg_over_time((${sum('bullpen_pool_slots_busy', QUEUE)} or ${always(0)})[1m:5s])
/ ${on(QUEUE)} bullpen:queue_slots_per_worker`,
  ),
]

/** @throws RangeError if the expression uses a metric that is not published. */
function rule(record: RecordedName, expr: string): RecordingRule {
  metricsIn(expr)
  return { record, expr }
}
