// What a drain did: counted while it goes on, and reported at its end.

import type { Conclusion } from '../attempt/runner.ts'
import type { TakenTask } from '../ports/ports.ts'

/** A task, as a report names it. */
export interface NamedTask {
  readonly id: string
  readonly task: string
}

/** Empty `abandoned` and `unrecorded`: all ended well. */
export interface DrainReport {
  readonly queue: string
  /** Attempts that ended by themselves meanwhile, whatever came of them. */
  readonly finished: number
  /** Back in their queue, no attempt used: interrupted by the drain, or taken and not started. */
  readonly handedBack: number
  /** Interrupted by the drain, and failed by that. */
  readonly failed: number
  /** Still running at the end; others recover them when their lock has run out. */
  readonly abandoned: readonly NamedTask[]
  /** They have ended, but the store has not confirmed that it is written down: they may be started again. */
  readonly unrecorded: readonly NamedTask[]
  /** How long into the drain the last one ran; up to its end for what is abandoned. */
  readonly longestMs: number
}

export class DrainTally {
  readonly #beganAt: number
  #finished = 0
  #handedBack = 0
  #failed = 0
  #longestMs = 0

  /** All times are of the monotonic clock. */
  constructor(beganAt: number) {
    this.#beganAt = beganAt
  }

  concluded({ end, verdict }: Conclusion, at: number): void {
    this.#longestMs = at - this.#beganAt
    // Of a lost one another owner decides; it is nothing that this process did.
    if (verdict.kind === 'lost') return
    if (verdict.kind === 'handed_back') this.#handedBack++
    else if (end.reason === 'drain' || end.reason === 'parent_closed') this.#failed++
    else this.#finished++
  }

  refused(): void {
    this.#handedBack++
  }

  /** `held`: taken, and not confirmed; those that run may be among them. */
  report(queue: string, running: readonly TakenTask[], held: readonly NamedTask[], at: number): DrainReport {
    const named = ({ id, task }: NamedTask): NamedTask => ({ id, task })
    const runs = new Set<string>(running.map(({ id }) => id))
    return {
      queue,
      finished: this.#finished,
      handedBack: this.#handedBack,
      failed: this.#failed,
      abandoned: running.map(named),
      unrecorded: held.filter(({ id }) => !runs.has(id)).map(named),
      longestMs: Math.round(running.length > 0 ? at - this.#beganAt : this.#longestMs),
    }
  }
}
