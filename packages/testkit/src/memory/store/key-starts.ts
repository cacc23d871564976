// Decides whether a concurrency key of a memory store may start a task: by how many of its tasks are active, by its rate, and by whether a
// handler has throttled it.
import type { TaskRecord } from '@bullpen/contract'
import { afterStart, type Clock, nextStart } from '@bullpen/engine/internal'
import { KeyLimits } from './key-limits.ts'

/** What keeps a key from starting a task, and until when if only time does. */
type KeyBlock = Omit<NonNullable<TaskRecord['waitsFor']>, 'ahead'>

export class KeyStarts {
  readonly limits = new KeyLimits()
  readonly #clock: Clock
  readonly #activeOf: (key: string) => number
  /** When the next start of each key would be due if its starts were spread evenly. */
  readonly #dueAt = new Map<string, number>()
  readonly #throttledUntil = new Map<string, number>()

  /** `activeOf` returns how many active tasks a key has. */
  constructor(clock: Clock, activeOf: (key: string) => number) {
    this.#clock = clock
    this.#activeOf = activeOf
  }

  /** Returns what keeps a key from starting a task, or undefined if it may start one. */
  blockOf(key: string): KeyBlock | undefined {
    const now = this.#clock.now()
    const { concurrency, rate } = this.limits.of(key)
    const ofRate = rate && nextStart(rate, this.#dueAt.get(key), now).startsAt
    const until = Math.max(ofRate ?? now, this.#throttledUntil.get(key) ?? now)
    if (until > now) return { kind: 'rate', until }
    if (concurrency !== undefined && this.#activeOf(key) >= concurrency) return { kind: 'concurrency' }
    return undefined
  }

  /** Counts a start. It is not given back if the task is requeued. */
  started(key: string): void {
    const { rate } = this.limits.of(key)
    if (rate !== undefined) this.#dueAt.set(key, afterStart(rate, this.#dueAt.get(key), this.#clock.now()).dueAt)
  }

  /** Throttles a key. A throttle that would end before the current one has no effect. */
  throttle(key: string, ms: number): void {
    this.#throttledUntil.set(key, Math.max(this.#throttledUntil.get(key) ?? 0, this.#clock.now() + ms))
  }
}
