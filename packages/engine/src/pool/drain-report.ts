// What a drain did. The tasks are counted during the drain and reported at its end.
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { FetchedTask, NamedTask } from '../ports/consumer.ts'

/** The drain was clean if `abandoned` and `unconfirmed` are empty. */
export interface DrainReport {
  readonly queue: string
  /** How many attempts ended on their own during the drain, with any outcome. */
  readonly finished: number
  /** How many tasks returned to their queue because the drain interrupted them or they were fetched but not started. */
  readonly requeued: number
  /** How many tasks failed because the drain interrupted them and their definition sets `onInterrupt: 'fail'`. */
  readonly failed: number
  /** Tasks whose attempts are still running. Other workers recover these tasks after their locks have expired. */
  readonly abandoned: readonly NamedTask[]
  /** Tasks that have ended without confirmation from the store, so they may run again. */
  readonly unconfirmed: readonly NamedTask[]
  /** The time from the start of the drain to the end of the last attempt, or to the end of the drain if a task is abandoned. */
  readonly slowestTaskMs: number
}

export class DrainTally {
  readonly #startedAt: number
  #finished = 0
  #requeued = 0
  #failed = 0
  #slowestTaskMs = 0

  /** All times are on the monotonic clock. */
  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  attemptEnded({ record, verdict }: AttemptResult, at: number): void {
    this.#slowestTaskMs = at - this.#startedAt
    // Another worker owns the task, so its end has nothing to do with this drain.
    if (verdict.kind === 'lost') return
    if (verdict.kind === 'requeued') this.#requeued++
    else if (record.reason === 'drain' || record.reason === 'parent_closed') this.#failed++
    else this.#finished++
  }

  taskReleased(): void {
    this.#requeued++
  }

  /** `uncommitted` are the consumer's tasks that the store has not confirmed. They may include running tasks. */
  report(queue: string, running: readonly FetchedTask[], uncommitted: readonly NamedTask[], at: number): DrainReport {
    const named = ({ id, task }: NamedTask): NamedTask => ({ id, task })
    const runningIds = new Set<string>(running.map(({ id }) => id))
    return {
      queue,
      finished: this.#finished,
      requeued: this.#requeued,
      failed: this.#failed,
      abandoned: running.map(named),
      unconfirmed: uncommitted.filter(({ id }) => !runningIds.has(id)).map(named),
      slowestTaskMs: Math.round(running.length > 0 ? at - this.#startedAt : this.#slowestTaskMs),
    }
  }
}
