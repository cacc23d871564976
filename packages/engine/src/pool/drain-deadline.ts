// How urgent a drain is: the harshest of all that was asked for, from whichever side, also while it is under way.
import type { DrainMode } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'

export interface DrainLimits {
  /** How long running tasks may go on before they are signalled, in ms. */
  readonly drainMs: number | 'none'
  /** How long signalled ones may take to end, in ms. */
  readonly graceMs: number
  /** What was taken, or is being fetched, is started all the same. Default: it goes back. */
  readonly light?: boolean | undefined
  /** Ends the wait for running tasks at once, as a second signal does. */
  readonly hurry?: AbortSignal | undefined
  /** Nobody knows what is broken in this worker: the pool ends as RECOVER_ERR, whatever it leaves. */
  readonly broken?: boolean | undefined
}

/** What a mode means. `drainMs`: for `soft_timeout`; the others have none, or no wait. */
export function drainLimits(
  mode: DrainMode,
  { drainMs, graceMs }: { readonly drainMs: number; readonly graceMs: number },
): DrainLimits {
  switch (mode) {
    case 'light':
      return { drainMs: 'none', graceMs, light: true }
    case 'soft':
      return { drainMs: 'none', graceMs }
    case 'soft_timeout':
      return { drainMs, graceMs }
    case 'hard':
      return { drainMs: 0, graceMs }
  }
}

/** Nothing makes a drain gentler again. A class, since it is pressed while it is waited for. */
export class DrainDeadline {
  readonly #clock: Clock
  readonly #onSoft: () => void
  readonly #over = new AbortController()
  readonly #soft = Promise.withResolvers<void>()
  #light = true
  #broken = false
  /** On the monotonic clock. */
  #deadlineAt = Number.POSITIVE_INFINITY
  #graceMs = Number.POSITIVE_INFINITY
  #setTimer = (): void => {}

  /** `onSoft`: what was light is so no longer; at once where it never was. */
  constructor(clock: Clock, limits: DrainLimits, onSoft: () => void) {
    this.#clock = clock
    this.#onSoft = onSoft
    this.tighten(limits)
  }

  get light(): boolean {
    return this.#light
  }

  /** Resolves when it is light no longer. */
  get soft(): Promise<void> {
    return this.#soft.promise
  }

  get broken(): boolean {
    return this.#broken
  }

  get graceMs(): number {
    return this.#graceMs
  }

  /** Until running tasks are signalled; Infinity while there is no deadline. */
  get leftMs(): number {
    return Math.max(0, this.#deadlineAt - this.#clock.monotonic())
  }

  /** Until signalled ones have had their grace as well; negative when that is over. */
  get leftInAllMs(): number {
    return this.#deadlineAt + this.#graceMs - this.#clock.monotonic()
  }

  tighten({ drainMs, graceMs, light = false, hurry, broken = false }: DrainLimits): void {
    if (this.#over.signal.aborted) return
    this.#broken ||= broken
    this.#graceMs = Math.min(this.#graceMs, graceMs)
    if (drainMs !== 'none') this.#deadlineAt = Math.min(this.#deadlineAt, this.#clock.monotonic() + drainMs)
    const soften = (): void => {
      if (!this.#light) return
      this.#light = false
      this.#onSoft()
      this.#soft.resolve()
    }
    if (!light) soften()
    const hasten = (): void => {
      this.#deadlineAt = Math.min(this.#deadlineAt, this.#clock.monotonic())
      soften()
      this.#setTimer()
    }
    if (hurry?.aborted) hasten()
    else hurry?.addEventListener('abort', hasten, { once: true, signal: this.#over.signal })
    this.#setTimer()
  }

  /** Whether the promise settled within so many ms, which is asked anew when it is pressed. Waits for one at a time. */
  async within(promise: Promise<unknown>, leftMs: () => number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<false>()
    let stop = (): void => {}
    this.#setTimer = () => {
      stop()
      const ms = leftMs()
      stop = ms === Number.POSITIVE_INFINITY ? () => {} : this.#clock.after(ms, () => resolve(false))
    }
    this.#setTimer()
    const settled = promise.then(
      () => true,
      () => true,
    )
    try {
      return await Promise.race([settled, late])
    } finally {
      stop()
      this.#setTimer = () => {}
    }
  }

  /** Nothing presses it any more; no listener is left. */
  close(): void {
    this.#over.abort()
  }
}
