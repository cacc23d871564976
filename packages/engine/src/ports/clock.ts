// Defines the ports for time and randomness, which the engine never reads directly from the platform.

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since an arbitrary fixed moment, with fractions. This value never decreases. */
  monotonic(): number
  /** Converts a value of the monotonic clock to milliseconds since 1970. This is cheaper than reading both clocks. */
  at(monotonic: number): number
  /** Calls `callback` once after `ms`. The returned function cancels the call. */
  after(ms: number, callback: () => void): () => void
  /** Creates a timer that can be set repeatedly. It calls `onFire` each time it fires. */
  timer(onFire: () => void): Timer
}

export interface Timer {
  /** Makes the timer fire once, `ms` from now. Replaces any earlier setting. */
  set(ms: number): void
  /** Cancels the current setting. */
  clear(): void
  /** Cancels the timer and releases it. */
  close(): void
}

/** Returns a random number from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number
