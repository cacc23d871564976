// Schedules the transitions of a memory store, which end when the store is closed.
import type { Clock } from '@bullpen/engine/internal'

export class Timers {
  readonly #clock: Clock
  readonly #stops = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `then` once the clock shows that `ms` have passed. Node's timers can fire up to a millisecond before `Date.now()` shows it. */
  after(ms: number, then: () => void): void {
    this.#at(this.#clock.now() + ms, then)
  }

  #at(time: number, then: () => void): void {
    const stop = this.#clock.after(Math.max(0, time - this.#clock.now()), () => {
      this.#stops.delete(stop)
      if (this.#clock.now() < time) this.#at(time, then)
      else then()
    })
    this.#stops.add(stop)
  }

  /** Cancels every scheduled call. */
  close(): void {
    for (const stop of this.#stops) stop()
    this.#stops.clear()
  }
}
