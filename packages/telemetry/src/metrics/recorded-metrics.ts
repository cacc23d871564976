// The series that Prometheus records from Bullpen's metrics. Like the metrics, they are a public contract.

export interface RecordedMetric {
  readonly labels: readonly string[]
  readonly help: string
}

/** Each name begins with `bullpen:`, because Prometheus reserves the colon for recorded series. */
export const RECORDED_METRICS = {
  'bullpen:queue_run_seconds': {
    labels: ['queue'],
    help: "How long an attempt takes on average: over the last 10 min; if none has ended, over the life of the queue's workers; if none has ended in them either, by the definitions' expectedDuration; otherwise 1 s.",
  },
  'bullpen:queue_slots_per_worker': {
    labels: ['queue'],
    help: 'How many slots a worker has for the queue, on average. While there is no worker, the number of the last ones; if there was none within a day, 1.',
  },
  'bullpen:queue_backlog_seconds': {
    labels: ['queue'],
    help: 'How long a single worker would need to run the waiting tasks: their number, times the mean run time, divided by the slots of a worker. It is 0 if the queue is paused or drained.',
  },
  'bullpen:queue_busy_workers': {
    labels: ['queue'],
    help: 'How many workers the busy slots would fill, on average over the last minute.',
  },
} as const satisfies Readonly<Record<`bullpen:${string}`, RecordedMetric>>

export type RecordedName = keyof typeof RECORDED_METRICS
