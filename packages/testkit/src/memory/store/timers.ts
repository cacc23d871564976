// Schedules the transitions of a memory store, which end when the store is closed.
import type { Clock } from '@bullpen/engine/internal'

export class Timers {
  readonly #clock: Clock
  readonly #stops = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `then` after `ms`. */
  after(ms: number, then: () => void): void {
    const stop = this.#clock.after(ms, () => {
      this.#stops.delete(stop)
      then()
    })
    this.#stops.add(stop)
  }

  /** Cancels every scheduled call. */
  close(): void {
    for (const stop of this.#stops) stop()
    this.#stops.clear()
  }
}
