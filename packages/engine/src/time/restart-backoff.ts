// How long to wait before something that failed is started again: a delay that doubles with each failure in a row.

export interface RestartLimits {
  /** Delay after the first failure, in ms. */
  readonly firstMs: number
  /** The longest delay, in ms. A run that lasted longer than this counts as healthy: the next delay is `firstMs` again. */
  readonly lastMs: number
}

export const DEFAULT_RESTART: RestartLimits = Object.freeze({ firstMs: 500, lastMs: 30_000 })

/** Milliseconds before the next start. `failures`: how many there were in a row before this one, from 0. */
export function restartDelay(failures: number, { firstMs, lastMs }: RestartLimits = DEFAULT_RESTART): number {
  return Math.min(firstMs * 2 ** failures, lastMs)
}

export interface RestartBackoff {
  /** The delay before the next start, in ms, when a run of `ranForMs` has failed; 0 for one that never started. */
  next(ranForMs: number): number
  /** Forgets the failures so far. */
  reset(): void
}

/** Counts failures in a row for one thing that is restarted. */
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
