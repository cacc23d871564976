// What a drain did: counted while it goes on, reported at its end.
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { FetchedTask, NamedTask } from '../ports/consumer.ts'

/** The drain was clean if `abandoned` and `unconfirmed` are empty. */
export interface DrainReport {
  readonly queue: string
  /** Attempts that ended by themselves during the drain, whatever their outcome. */
  readonly finished: number
  /** Tasks that went back to their queue: interrupted by the drain, or fetched and not started. */
  readonly requeued: number
  /** Tasks that the drain interrupted and whose definition says that they fail then. */
  readonly failed: number
  /** Attempts that still run; other workers recover the tasks when their locks have expired. */
  readonly abandoned: readonly NamedTask[]
  /** Tasks that have ended without the store's confirmation: they may run again. */
  readonly unconfirmed: readonly NamedTask[]
  /** How long into the drain the last attempt ran; to the end of the drain if one is abandoned. */
  readonly slowestTaskMs: number
}

export class DrainTally {
  readonly #startedAt: number
  #finished = 0
  #requeued = 0
  #failed = 0
  #slowestTaskMs = 0

  /** All times are of the monotonic clock. */
  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  attemptEnded({ record, verdict }: AttemptResult, at: number): void {
    this.#slowestTaskMs = at - this.#startedAt
    // Another worker owns the task: nothing of it is this drain's doing.
    if (verdict.kind === 'lost') return
    if (verdict.kind === 'requeued') this.#requeued++
    else if (record.reason === 'drain' || record.reason === 'parent_closed') this.#failed++
    else this.#finished++
  }

  taskReleased(): void {
    this.#requeued++
  }

  /** `uncommitted`: the consumer's tasks that the store has not confirmed; those that run may be among them. */
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
