// A handler throws this error when a service that it calls asks for fewer calls. It throttles the whole queue, and the task has
// not failed.
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
 * Throw the returned error in a handler to throttle its queue: for `delay`, no worker starts a task of the queue, and when the
 * delay is over, this task runs first. The attempt does not count against the retry policy. Tasks that are already running
 * continue. A second throttle may extend the first one but cannot shorten it.
 *
 * @example throw rateLimited('30s')
 * @throws BullpenError `invalid_duration`.
 */
export function rateLimited(delay: Duration): RateLimited {
  return new RateLimited(delay)
}
