// The ports for time and randomness, which the engine never reads from the platform itself.

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since an arbitrary fixed moment, with fractions. Never goes back. */
  monotonic(): number
  /** The time since 1970, in ms, at a moment of the monotonic clock. Cheaper than reading both clocks. */
  at(monotonic: number): number
  /** Calls back once after `ms`. The returned function cancels that. */
  after(ms: number, callback: () => void): () => void
  /** A timer that can be set again and again; it calls back each time that it fires. */
  timer(onFire: () => void): Timer
}

export interface Timer {
  /** Fires once, `ms` from now; replaces an earlier setting. */
  set(ms: number): void
  /** Cancels the current setting. */
  clear(): void
  /** Cancels the timer and releases it. */
  close(): void
}

/** A number from 0 (included) to 1 (excluded). */
export type Random = () => number
