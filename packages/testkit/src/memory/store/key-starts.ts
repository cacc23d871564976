// Decides whether a concurrency key of a memory store may start a task: by how many of its tasks are active, by its rate, and by whether a
// handler has throttled it.
import type { StartRate } from '@bullpen/contract'
import { afterStart, type Clock, type KeyState, nextStart } from '@bullpen/engine/internal'
import { KeyLimits } from './key-limits.ts'

/** What keeps a key from starting a task, and until when if only time does. */
export interface KeyBlock {
  readonly kind: 'rate' | 'concurrency'
  readonly until?: number
}

export class KeyStarts {
  readonly limits = new KeyLimits()
  readonly now: () => number
  /** Returns how many active tasks a key has. */
  readonly activeOf: (key: string) => number
  /** When the next start of each key would be due if its starts were spread evenly. */
  readonly #dueAt = new Map<string, number>()
  readonly #throttledUntil = new Map<string, number>()

  constructor(clock: Clock, activeOf: (key: string) => number) {
    this.now = () => clock.now()
    this.activeOf = activeOf
  }

  /** Returns what keeps a key from starting a task, or undefined if it may start one. */
  blockOf(key: string): KeyBlock | undefined {
    const now = this.now()
    const until = Math.max(...this.#untilOf(key, this.limits.of(key).rate, now))
    if (until > now) return { kind: 'rate', until }
    return this.isFull(key) ? { kind: 'concurrency' } : undefined
  }

  /** Returns whether as many of a key's tasks are active as its limit says. */
  isFull(key: string): boolean {
    const { concurrency } = this.limits.of(key)
    return concurrency !== undefined && this.activeOf(key) >= concurrency
  }

  /** Returns the limits of a key, and all that keeps it from starting a task. */
  stateOf(key: string): Omit<KeyState, 'key' | 'waiting'> {
    const [now, active] = [this.now(), this.activeOf(key)]
    const { concurrency, rate } = this.limits.inForce(key)
    const [ofRate, ofThrottle] = this.#untilOf(key, rate?.value, now)
    const blocks = {
      concurrency: concurrency !== undefined && active >= concurrency.value,
      rate: ofRate > now,
      throttle: ofThrottle > now,
    }
    return {
      ...{ active, concurrency, rate },
      blockedBy: (['concurrency', 'rate', 'throttle'] as const).filter((block) => blocks[block]),
      nextStartAt: blocks.rate || blocks.throttle ? Math.max(ofRate, ofThrottle) : undefined,
    }
  }

  /** Counts a start. It is not given back if the task is requeued. */
  started(key: string): void {
    const { rate } = this.limits.of(key)
    if (rate !== undefined) this.#dueAt.set(key, afterStart(rate, this.#dueAt.get(key), this.now()).dueAt)
  }

  /** Throttles a key. A throttle that would end before the current one has no effect. */
  throttle(key: string, ms: number): void {
    this.#throttledUntil.set(key, Math.max(this.#throttledUntil.get(key) ?? 0, this.now() + ms))
  }

  /** Returns until when the rate and the throttle of a key keep it from starting a task: `now` if they do not. */
  #untilOf(key: string, rate: StartRate | undefined, now: number): readonly [ofRate: number, ofThrottle: number] {
    const ofRate = rate && nextStart(rate, this.#dueAt.get(key), now).startsAt
    return [ofRate ?? now, this.#throttledUntil.get(key) ?? now]
  }
}
