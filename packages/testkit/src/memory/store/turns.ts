// Lets the concurrency keys of a memory store's waiting tasks take turns, in the same order as the Redis broker
// (packages/bullmq/src/internals/turns/turn-steps.ts).
import type { Turn } from '@bullpen/engine'

/** By how much a key that had no waiting task joins behind the key that is next, in turns. */
const JOINS_BEHIND = 0.125

export class Turns {
  /** The pass of each key. A key that has no more waiting tasks keeps its pass until its turn. */
  readonly #passes = new Map<string, number>()
  /** The pass of the tasks without a key. */
  #own: number | undefined

  /** Notes that a key has got its first waiting task. */
  join(key: string): void {
    if (this.#passes.has(key)) return
    const first = this.#first()
    this.#passes.set(key, first === undefined ? (this.#own ?? 0) : first.pass + JOINS_BEHIND)
  }

  /**
   * Returns the key whose turn it is, or undefined if it is the turn of the tasks without a key. `waits` returns whether a key has a
   * waiting task, and `hasOthers` is whether tasks without a key wait.
   */
  next(waits: (key: string) => boolean, hasOthers: boolean): string | undefined {
    for (;;) {
      const first = this.#first()
      if (first === undefined) {
        this.#own = undefined
        return undefined
      }
      if (hasOthers && this.#ownPass(first.pass) <= first.pass) return undefined
      if (waits(first.key)) return first.key
      this.#passes.delete(first.key)
    }
  }

  /** Counts a start. `turn` is undefined for a task without a key. */
  started(turn: Turn | undefined): void {
    const first = this.#first()
    if (turn !== undefined) this.#passes.set(turn.key, (this.#passes.get(turn.key) ?? 0) + 1 / turn.weight)
    else if (first !== undefined) this.#own = this.#ownPass(first.pass) + 1
  }

  /** Returns the pass of the tasks without a key, which are at most one turn behind the key that is next. */
  #ownPass(first: number): number {
    return Math.max(this.#own ?? first, first - 1)
  }

  #first(): { readonly key: string; readonly pass: number } | undefined {
    const [first] = [...this.#passes].sort(([a, one], [b, other]) => one - other || (a < b ? -1 : 1))
    return first && { key: first[0], pass: first[1] }
  }
}
