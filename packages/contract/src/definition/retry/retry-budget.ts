// Defines a task's retry budget, which limits the retries of all of its tasks together, so that an outage of a service that they
// call does not multiply the load.
import type { Fail } from '../options.ts'

/** The `retry.budget` setting of a definition. {@link DEFAULT_RETRY_BUDGET} contains the defaults. */
export interface RetryBudgetOptions {
  /**
   * How many retries there may be for each attempt that ended within the last 10 s, from 0 to 1. Retries that succeed do not
   * count. Defaults to 0.2.
   */
  readonly ratio?: number
  /**
   * How many further retries per second there may be, from 0.01 to 10,000. Unused retries stay available for 10 s. Defaults to 10.
   */
  readonly minRetriesPerSecond?: number
}

/** A retry budget with defaults filled in. */
export interface RetryBudget {
  readonly ratio: number
  readonly minRetriesPerSecond: number
}

/** The same budget as in Finagle and Linkerd: a retry for every five attempts, and 10 retries per second. */
export const DEFAULT_RETRY_BUDGET: RetryBudget = Object.freeze({ ratio: 0.2, minRetriesPerSecond: 10 })

export const RETRY_BUDGET_SETTINGS = ['ratio', 'minRetriesPerSecond'] as const satisfies readonly (keyof RetryBudget)[]

const LOWEST_RATE = 0.01
const HIGHEST_RATE = 10_000

/**
 * Fills in the defaults. Returns undefined for `'none'`. Calls `fail`, which must throw, if a number is out of range. The
 * caller has already refused unknown settings.
 */
export function retryBudget(options: RetryBudgetOptions | 'none', fail: Fail): RetryBudget | undefined {
  if (options === 'none') return undefined
  const { ratio, minRetriesPerSecond } = { ...DEFAULT_RETRY_BUDGET, ...options }
  if (typeof ratio !== 'number' || !(ratio >= 0 && ratio <= 1)) {
    fail(`retry.budget.ratio is ${ratio}; expected a number from 0 to 1`)
  }
  if (
    typeof minRetriesPerSecond !== 'number' ||
    !(minRetriesPerSecond >= LOWEST_RATE && minRetriesPerSecond <= HIGHEST_RATE)
  ) {
    fail(
      `retry.budget.minRetriesPerSecond is ${minRetriesPerSecond}; expected a number from ${LOWEST_RATE} to ${HIGHEST_RATE}`,
    )
  }
  return Object.freeze({ ratio, minRetriesPerSecond })
}
