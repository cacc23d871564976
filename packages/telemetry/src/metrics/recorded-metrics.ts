// The series that Prometheus records from Bullpen's metrics. Like the metrics, they are a public contract.

export interface RecordedMetric {
  readonly labels: readonly string[]
  readonly help: string
}

/** Each name begins with `bullpen:`, because Prometheus reserves the colon for recorded series. */
export const RECORDED_METRICS = {
  'bullpen:queue_run_seconds': {
    labels: ['queue'],
    help: "The mean duration of an attempt over the last 10 min. If none has ended in that time, the mean since the queue's workers started. If they have not run any, the mean expectedDuration of the queue's definitions, or 1 s if none has one.",
  },
  'bullpen:queue_slots_per_worker': {
    labels: ['queue'],
    help: 'How many slots a worker has for the queue, on average. While there is no worker, the mean of the workers of the last day, or 1 if there were none.',
  },
  'bullpen:queue_backlog_seconds': {
    labels: ['queue'],
    help: 'How long a single worker would need to run the waiting tasks that could start: their number, times the mean run time, divided by the slots of a worker. Tasks that a limit, a throttle, permits or an open circuit breaker blocks do not count. It is 0 if the queue is paused or drained.',
  },
  'bullpen:queue_backlog_target_seconds': {
    labels: ['queue'],
    help: "How many seconds of backlog each worker may have: half of the shortest startWithin of the queue's tasks, but at least 5 s, or 30 s if none of them has an SLO.",
  },
  'bullpen:queue_backlog_workers': {
    labels: ['queue'],
    help: 'How many workers the backlog needs: bullpen:queue_backlog_seconds divided by bullpen:queue_backlog_target_seconds.',
  },
  'bullpen:queue_busy_workers': {
    labels: ['queue'],
    help: 'How many workers the busy slots would fill, on average over the last minute.',
  },
} as const satisfies Readonly<Record<`bullpen:${string}`, RecordedMetric>>

export type RecordedName = keyof typeof RECORDED_METRICS
