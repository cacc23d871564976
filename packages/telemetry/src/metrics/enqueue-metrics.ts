// Times how long producers wait until their tasks are stored.
import { fastHistogram } from './instruments.ts'
import { remembered } from './remembered.ts'

export interface EnqueueMetrics {
  /** Call it for each task that has been stored. */
  enqueueTimed(queue: string, seconds: number): void
  /** Returns the metrics in Prometheus's text format. */
  exposition(): string
}

export function enqueueMetrics(): EnqueueMetrics {
  const durations = fastHistogram('bullpen_enqueue_duration_seconds')
  const ofQueue = remembered((queue: string) => durations.series({ queue }))
  return {
    enqueueTimed: (queue, seconds) => ofQueue(queue).observe(seconds),
    exposition: () => `${durations.exposition()}\n`,
  }
}
