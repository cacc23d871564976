// What a handler throws when whom it calls asks for fewer calls: not a failure of this task, but news for its whole queue.
import { type Duration, formatDuration, milliseconds } from '../definition/duration.ts'

/** Made by {@link rateLimited}. */
export class RateLimited extends Error {
  override readonly name = 'RateLimited'
  readonly delayMs: number

  /** @throws BullpenError `invalid_duration`. */
  constructor(delay: Duration) {
    const delayMs = milliseconds(delay, 'the delay of rateLimited')
    super(`the handler asked that its queue be held for ${formatDuration(delayMs)}`)
    this.delayMs = delayMs
  }
}

/**
 * To be thrown by a handler: its queue starts nothing for that long, in any process, and then this task first. It uses up no
 * attempt. What runs goes on. Several extend the hold, none shortens it.
 *
 * @example throw rateLimited('30s')
 * @throws BullpenError `invalid_duration`.
 */
export function rateLimited(delay: Duration): RateLimited {
  return new RateLimited(delay)
}
