// Defines the error that a handler throws when a service limits its calls. The error throttles the whole queue and does not count
// as a failed attempt.
import { type Duration, formatDuration, milliseconds } from '../definition/duration.ts'

/** The error that {@link rateLimited} creates. */
export class RateLimited extends Error {
  override readonly name = 'RateLimited'
  readonly delayMs: number

  /** @throws BullpenError `invalid_duration`. */
  constructor(delay: Duration) {
    const delayMs = milliseconds(delay, 'the delay of rateLimited')
    super(`rate limited: the queue is throttled for ${formatDuration(delayMs)}`)
    this.delayMs = delayMs
  }
}

/**
 * Returns an error for a handler to throw in order to throttle its queue. For the duration of `delay`, workers do not start any
 * of the queue's tasks. When the delay is over, this task runs first. The attempt does not count against the retry policy. Tasks
 * that are already running continue. A second throttle may extend the first one but cannot shorten it.
 *
 * @example throw rateLimited('30s')
 * @throws BullpenError `invalid_duration`.
 */
export function rateLimited(delay: Duration): RateLimited {
  return new RateLimited(delay)
}
