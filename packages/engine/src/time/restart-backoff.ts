// Computes how long to wait before restarting something that failed. The delay doubles with each consecutive failure.

export interface RestartLimits {
  /** The delay after the first failure, in ms. */
  readonly firstMs: number
  /** The longest delay, in ms. After a run that lasted longer than this, the next delay is `firstMs` again. */
  readonly lastMs: number
}

export const DEFAULT_RESTART: RestartLimits = Object.freeze({ firstMs: 500, lastMs: 30_000 })

/** Returns the delay before the next start, in ms. `failures` is the number of consecutive failures before this one. */
export function restartDelay(failures: number, { firstMs, lastMs }: RestartLimits = DEFAULT_RESTART): number {
  return Math.min(firstMs * 2 ** failures, lastMs)
}

export interface RestartBackoff {
  /** Returns the delay before the next start, in ms, after a run of `ranForMs` has failed. Pass 0 if the run never started. */
  next(ranForMs: number): number
  /** Resets the count of consecutive failures. */
  reset(): void
}

/** Creates a backoff that counts consecutive failures. */
export function createRestartBackoff(limits: RestartLimits = DEFAULT_RESTART): RestartBackoff {
  let failures = 0
  return {
    next(ranForMs) {
      if (ranForMs > limits.lastMs) failures = 0
      return restartDelay(failures++, limits)
    },
    reset() {
      failures = 0
    },
  }
}
