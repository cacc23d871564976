// Lets the concurrency keys of a memory store's waiting tasks take turns, in the same order as the Redis broker
// (packages/bullmq/src/internals/turns/turn-steps.ts).
import type { Turn } from '@bullpen/engine'

/** By how much a key that had no waiting task joins behind the key that is next, in turns. */
const JOINS_BEHIND = 0.125

export interface TurnsOptions {
  /** Returns whether a key has a waiting task. */
  readonly waits: (key: string) => boolean
  /** Returns whether the limits of a key allow a start. */
  readonly mayStart: (key: string) => boolean
}

export class Turns {
  readonly #waits: TurnsOptions['waits']
  readonly #mayStart: TurnsOptions['mayStart']
  /** The pass of each key. A key that has no more waiting tasks keeps its pass until its turn. */
  readonly #passes = new Map<string, number>()
  /** The keys that may not start a task, by the pass with which they take turns again. */
  readonly #blocked = new Map<string, number>()
  /** The pass of the tasks without a key. */
  #own: number | undefined
  /** The pass of the last turn after which a key was blocked, in case no key takes turns then. */
  #time: number | undefined

  constructor({ waits, mayStart }: TurnsOptions) {
    this.#waits = waits
    this.#mayStart = mayStart
  }

  /** Notes that a key has got its first waiting task. */
  join(key: string): void {
    if (this.#passes.has(key) || this.#blocked.has(key)) return
    const first = this.#first()
    this.#passes.set(key, first === undefined ? (this.#time ?? this.#own ?? 0) : first.pass + JOINS_BEHIND)
  }

  /**
   * Returns the key whose turn it is, or undefined if it is the turn of the tasks without a key, or if no key may start a task.
   * `hasOthers` is whether tasks without a key wait.
   */
  next(hasOthers: boolean): string | undefined {
    this.#resume()
    for (;;) {
      const first = this.#first()
      if (first === undefined) {
        if (![...this.#blocked.keys()].some(this.#waits)) this.#forget()
        return undefined
      }
      const { key, pass } = first
      if (hasOthers && this.#ownPass(pass) <= pass) return undefined
      if (!this.#mayStart(key)) this.#block(key, pass, pass)
      else if (this.#waits(key)) return key
      else this.#passes.delete(key)
    }
  }

  /** Counts a start. `turn` is undefined for a task without a key. */
  started(turn: Turn | undefined): void {
    const first = this.#first()
    if (turn === undefined) {
      if (first !== undefined) this.#own = this.#ownPass(first.pass) + 1
      return
    }
    const pass = this.#passes.get(turn.key)
    if (pass === undefined) return
    const next = pass + 1 / turn.weight
    if (this.#mayStart(turn.key)) this.#passes.set(turn.key, next)
    else this.#block(turn.key, next, pass)
  }

  /** Lets a key take no turns until it may start a task. `time` is the pass of its last turn. */
  #block(key: string, pass: number, time: number): void {
    this.#passes.delete(key)
    this.#blocked.set(key, pass)
    this.#time = time
  }

  /** Lets the blocked keys that may start a task take turns again. A key that was blocked for a long time gets no more than its turn. */
  #resume(): void {
    for (const [key, pass] of this.#blocked) {
      if (!this.#mayStart(key)) continue
      this.#blocked.delete(key)
      this.#passes.set(key, Math.max(pass, this.#first()?.pass ?? this.#time ?? pass))
    }
  }

  /** All keys begin again. */
  #forget(): void {
    this.#blocked.clear()
    this.#own = undefined
    this.#time = undefined
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
