// What a drain did: counted while it goes on, and reported at its end.

import type { AttemptResult } from '../ports/attempt-result.ts'
import type { FetchedTask, NamedTask } from '../ports/consumer.ts'

/** Empty `abandoned` and `unconfirmed`: all ended well. */
export interface DrainReport {
  readonly queue: string
  /** Attempts that ended by themselves meanwhile, whatever came of them. */
  readonly finished: number
  /** Back in their queue, no attempt used: interrupted by the drain, or taken and not started. */
  readonly requeued: number
  /** Interrupted by the drain, and failed by that. */
  readonly failed: number
  /** Still running at the end; others recover them when their lock has run out. */
  readonly abandoned: readonly NamedTask[]
  /** They have ended, but the store has not confirmed that it is written down: they may be started again. */
  readonly unconfirmed: readonly NamedTask[]
  /** How long into the drain the last one ran; up to its end for what is abandoned. */
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

  concluded({ record, verdict }: AttemptResult, at: number): void {
    this.#slowestTaskMs = at - this.#startedAt
    // Of a lost one another owner decides; it is nothing that this worker did.
    if (verdict.kind === 'lost') return
    if (verdict.kind === 'requeued') this.#requeued++
    else if (record.reason === 'drain' || record.reason === 'parent_closed') this.#failed++
    else this.#finished++
  }

  refused(): void {
    this.#requeued++
  }

  /** `held`: taken, and not confirmed; those that run may be among them. */
  report(queue: string, running: readonly FetchedTask[], held: readonly NamedTask[], at: number): DrainReport {
    const named = ({ id, task }: NamedTask): NamedTask => ({ id, task })
    const runs = new Set<string>(running.map(({ id }) => id))
    return {
      queue,
      finished: this.#finished,
      requeued: this.#requeued,
      failed: this.#failed,
      abandoned: running.map(named),
      unconfirmed: held.filter(({ id }) => !runs.has(id)).map(named),
      slowestTaskMs: Math.round(running.length > 0 ? at - this.#startedAt : this.#slowestTaskMs),
    }
  }
}
