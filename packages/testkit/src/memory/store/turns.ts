// Lets the concurrency keys of a memory store's waiting tasks take turns, in the same order as the Redis broker
// (packages/bullmq/src/internals/turns/turn-steps.ts).
import type { Turn } from '@bullpen/engine'
import type { KeyBlock } from './key-starts.ts'

/** By how much a key that had no waiting task joins behind the key that is next, in turns. */
const JOINS_BEHIND = 0.125

/** A key that may start no task. */
interface BlockedKey {
  /** The pass with which it takes turns again. */
  readonly pass: number
  /** When it does so, or undefined if one of its tasks has to end first, or if all of its tasks wait for services. */
  readonly until: number | undefined
  readonly waitsForServices: boolean
}

export interface TurnsOptions {
  readonly now: () => number
  /** Returns whether a key has a waiting task. */
  readonly waits: (key: string) => boolean
  /** Returns what keeps a key from starting a task, if anything does. */
  readonly blockOf: (key: string) => KeyBlock | undefined
}

export class Turns {
  readonly #options: TurnsOptions
  /** The pass of each key. A key that has no more waiting tasks keeps its pass until its turn. */
  readonly #passes = new Map<string, number>()
  readonly #blocked = new Map<string, BlockedKey>()
  /** The pass of the tasks without a key. */
  #own: number | undefined
  /** The pass of the last turn after which a key was blocked, in case no key takes turns then. */
  #time: number | undefined

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  /** Notes that a key has got its first waiting task. */
  join(key: string): void {
    if (this.#passes.has(key) || this.#blocked.has(key)) return
    const reached = this.#reached()
    this.#passes.set(key, reached === undefined ? (this.#own ?? 0) : reached + JOINS_BEHIND)
  }

  /**
   * Returns the key whose turn it is, or undefined if it is the turn of the tasks without a key, or if no key may start a task.
   * `hasOthers` is whether tasks without a key wait.
   */
  next(hasOthers: boolean): string | undefined {
    const { now, waits, blockOf } = this.#options
    const due = [...this.#blocked].filter(([, { until }]) => until !== undefined && until <= now())
    const byTime = due.sort(([a, one], [b, other]) => (one.until ?? 0) - (other.until ?? 0) || (a < b ? -1 : 1))
    for (const [key] of byTime) this.#resume(key)
    for (const [key, { waitsForServices }] of this.#blocked) {
      if (waitsForServices && blockOf(key)?.kind !== 'breaker') this.#resume(key)
    }
    for (;;) {
      const first = this.#first()
      if (first === undefined) {
        if (![...this.#blocked.keys()].some(waits)) this.#forget()
        return undefined
      }
      const { key, pass } = first
      if (hasOthers && this.#ownPass(pass) <= pass) return undefined
      const block = blockOf(key)
      if (block !== undefined) this.#block(key, pass, pass, block)
      else if (waits(key)) return key
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
    const block = this.#options.blockOf(turn.key)
    if (block === undefined) this.#passes.set(turn.key, next)
    else this.#block(turn.key, next, pass, block)
  }

  /** Lets a key take turns again because one of its tasks has stopped being active, unless it has to wait for a time. */
  left(key: string): void {
    const blocked = this.#blocked.get(key)
    if (blocked !== undefined && blocked.until === undefined && !blocked.waitsForServices) this.#resume(key)
  }

  /** Lets the keys take turns again that may start a task after their limits have changed. Those that waited for a time are looked at again. */
  recheck(hasLimits: boolean): void {
    for (const [key, { pass, until, waitsForServices }] of [...this.#blocked].sort(byPass(([, { pass }]) => pass))) {
      if (waitsForServices) continue
      if (until !== undefined && hasLimits) this.#blocked.set(key, { pass, until: 0, waitsForServices })
      else if (until !== undefined || this.#options.blockOf(key)?.kind !== 'concurrency') this.#resume(key)
    }
  }

  /** Lets a key take no turns for now. `pass` is that with which it takes turns again, and `time` that of its last turn. */
  #block(key: string, pass: number, time: number, { kind, until }: KeyBlock): void {
    this.#passes.delete(key)
    this.#blocked.set(key, { pass, until, waitsForServices: kind === 'breaker' })
    this.#time = time
  }

  /** Returns the pass that the keys have reached: that of the next key, or that of the last turn after which a key was blocked. */
  #reached(): number | undefined {
    const first = this.#first()?.pass
    if (first === undefined || this.#time === undefined) return first ?? this.#time
    return Math.max(first, this.#time)
  }

  /** Lets a key take turns again. If it was blocked for a long time, it gets no more than its turn. */
  #resume(key: string): void {
    const { pass = 0 } = this.#blocked.get(key) ?? {}
    this.#blocked.delete(key)
    this.#passes.set(key, Math.max(pass, this.#reached() ?? pass))
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
    const [first] = [...this.#passes].sort(byPass(([, pass]) => pass))
    return first && { key: first[0], pass: first[1] }
  }
}

/** Orders keys by their pass, and those with the same pass by their name. */
function byPass<T extends readonly [key: string, of: unknown]>(passOf: (entry: T) => number): (a: T, b: T) => number {
  return (one, other) => passOf(one) - passOf(other) || (one[0] < other[0] ? -1 : 1)
}
