// Estimates when new tasks start, for the memory broker.
import type { NewTask } from '@bullpen/engine'
import { type Clock, createStartEstimator, type StartEstimator } from '@bullpen/engine/internal'
import type { MemoryStore } from '../store/memory-store.ts'

/** The maximum age of a reading of a queue, in ms. As on Redis, the rate is measured between readings that are some time apart. */
const READ_EVERY_MS = 2_000

export class StartEstimates {
  readonly #clock: Clock
  readonly #queues = new Map<string, { readonly estimator: StartEstimator; readAt: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns when a task is expected to start, in ms since 1970, or undefined if that is unknown. Call it before the task is added. */
  expect(task: NewTask, store: MemoryStore): number | undefined {
    const at = this.#clock.monotonic()
    const known = this.#queues.get(task.queue) ?? {
      estimator: createStartEstimator(),
      readAt: Number.NEGATIVE_INFINITY,
    }
    this.#queues.set(task.queue, known)
    if (at - known.readAt >= READ_EVERY_MS) {
      known.readAt = at
      const waiting = store.places.in('waiting')
      const unprioritized = waiting.filter(({ priority }) => priority === 0).length
      const prioritized = waiting.length - unprioritized
      known.estimator.beginReading()({ at, unprioritized, prioritized, started: store.started, isPaused: false })
    }
    return known.estimator.expect(task, at)
  }
}
