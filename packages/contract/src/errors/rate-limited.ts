// Thrown by a handler when a service that it calls asks for fewer calls: throttles the whole queue, and is no failure of the task.
import { type Duration, formatDuration, milliseconds } from '../definition/duration.ts'

/** Created by {@link rateLimited}. */
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
 * Throw this in a handler to throttle its queue: no worker starts a task of the queue for that long, and then this task is
 * first. The attempt does not count. Running tasks continue. A second throttle may extend the first, but not shorten it.
 *
 * @example throw rateLimited('30s')
 * @throws BullpenError `invalid_duration`.
 */
export function rateLimited(delay: Duration): RateLimited {
  return new RateLimited(delay)
}
