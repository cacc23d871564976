// Defines how far a call may depart from its definition's retry policy.

import type { Fail } from '../options.ts'
import { type Duration, formatDuration, milliseconds } from '../units/duration.ts'

/** The `retry.callBounds` setting of a definition. Without it, a call can only choose among what the definition's own policy uses. */
export interface RetryBoundsOptions {
  /** The most attempts that a call may ask for, from the definition's `maxAttempts` to 1,000. Defaults to `maxAttempts`. */
  readonly maxAttempts?: number
  /** The shortest delay that a call may set, before the jitter. Defaults to the shortest delay of the definition's backoff. */
  readonly minDelay?: Duration
  /** The longest delay that a call may set, before the jitter. Defaults to the longest delay of the definition's backoff. */
  readonly maxDelay?: Duration
  /** The longest `totalTimeout` that a call may set. Applies only to long tasks. By default, there is no limit. */
  readonly totalTimeout?: Duration
}

/** The bounds with defaults filled in and durations in milliseconds. */
export interface RetryBounds {
  readonly maxAttempts: number
  readonly minDelayMs: number
  readonly maxDelayMs: number
  /** Undefined if a call may set any total timeout. */
  readonly totalMs: number | undefined
}

export const RETRY_BOUNDS_SETTINGS = [
  'maxAttempts',
  'minDelay',
  'maxDelay',
  'totalTimeout',
] as const satisfies readonly (keyof RetryBoundsOptions)[]

/** What the bounds must include: the definition's own attempts, and the delays of its backoff. */
export type OwnRetries = Pick<RetryBounds, 'maxAttempts' | 'minDelayMs' | 'maxDelayMs'>

/**
 * Fills in the defaults. Calls `fail`, which must throw, if the definition's own policy is outside of the bounds. The caller has
 * already refused unknown settings. @throws BullpenError `invalid_duration`.
 */
export function retryBounds(
  options: RetryBoundsOptions,
  own: OwnRetries,
  { task, mostAttempts, fail }: { readonly task: string; readonly mostAttempts: number; readonly fail: Fail },
): RetryBounds {
  const { maxAttempts = own.maxAttempts } = options
  if (!Number.isInteger(maxAttempts) || maxAttempts < own.maxAttempts || maxAttempts > mostAttempts) {
    fail(
      `retry.callBounds.maxAttempts is ${maxAttempts}; expected a whole number from ${own.maxAttempts} (retry.maxAttempts) to ${mostAttempts}`,
    )
  }
  const duration = <D>(setting: Exclude<keyof RetryBoundsOptions, 'maxAttempts'>, byDefault: D): number | D => {
    const given = options[setting]
    return given === undefined ? byDefault : milliseconds(given, `retry.callBounds.${setting} of ${task}`)
  }
  const minDelayMs = duration('minDelay', own.minDelayMs)
  const maxDelayMs = duration('maxDelay', own.maxDelayMs)
  if (minDelayMs > own.minDelayMs) {
    const shortest = formatDuration(own.minDelayMs)
    fail(
      `retry.callBounds.minDelay is '${options.minDelay}'; expected at most '${shortest}', the backoff's shortest delay`,
    )
  }
  if (maxDelayMs < own.maxDelayMs) {
    const longest = formatDuration(own.maxDelayMs)
    fail(
      `retry.callBounds.maxDelay is '${options.maxDelay}'; expected at least '${longest}', the backoff's longest delay`,
    )
  }
  return Object.freeze({ maxAttempts, minDelayMs, maxDelayMs, totalMs: duration('totalTimeout', undefined) })
}
