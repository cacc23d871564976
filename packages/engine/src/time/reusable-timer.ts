// Lends one timer to one user after another, because creating a timer costs as much as running a short task.
import type { Clock, Timer } from '../ports/clock.ts'

export class ReusableTimer {
  readonly #clock: Pick<Clock, 'timer'>
  #timer: Timer | undefined
  #lent: Timer | undefined
  #onFire: (() => void) | undefined

  constructor(clock: Pick<Clock, 'timer'>) {
    this.#clock = clock
  }

  /** Lends the timer until its user closes it or it is lent again. */
  lend(onFire: () => void): Timer {
    this.#onFire = onFire
    if (this.#lent !== undefined) return this.#lent
    const timer = this.#clock.timer(() => this.#onFire?.())
    this.#timer = timer
    this.#lent = { set: timer.set, clear: timer.clear, close: timer.clear }
    return this.#lent
  }

  /** Releases the timer permanently. */
  close(): void {
    this.#timer?.close()
  }
}
