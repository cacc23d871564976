// Defines the error that a handler throws when a service limits its calls. The error throttles the task's queue or concurrency key and does
// not count as a failed attempt.
import { type Duration, formatDuration, milliseconds } from '../definition/units/duration.ts'
import { BullpenError } from './errors.ts'

/** What a handler throttles: its whole queue, or only the tasks with the same concurrency key. */
const THROTTLED = ['queue', 'concurrencyKey'] as const

export type Throttled = (typeof THROTTLED)[number]

export interface RateLimitedOptions {
  /**
   * What is throttled. With `'concurrencyKey'`, only the tasks with the same concurrency key do not start. If the task has no
   * concurrency key, or its queue has no `fairness`, the whole queue is throttled anyway. Defaults to `'queue'`.
   */
  readonly of?: Throttled
}

const NAMES: Readonly<Record<Throttled, string>> = { queue: 'queue', concurrencyKey: 'concurrency key' }

/** The error that {@link rateLimited} creates. */
export class RateLimited extends Error {
  override readonly name = 'RateLimited'
  readonly delayMs: number
  readonly of: Throttled

  /** @throws BullpenError `invalid_duration` or `invalid_request`. */
  constructor(delay: Duration, { of = 'queue' }: RateLimitedOptions = {}) {
    const delayMs = milliseconds(delay, 'the delay of rateLimited')
    if (!THROTTLED.includes(of)) {
      throw new BullpenError(
        'invalid_request',
        `the option 'of' of rateLimited is ${JSON.stringify(of)}; expected ${THROTTLED.map((each) => `'${each}'`).join(' or ')}`,
      )
    }
    super(`rate limited: the ${NAMES[of]} is throttled for ${formatDuration(delayMs)}`)
    this.delayMs = delayMs
    this.of = of
  }
}

/**
 * Returns an error for a handler to throw in order to throttle its queue. For the duration of `delay`, workers do not start any
 * of the queue's tasks. When the delay is over, this task runs first. The attempt does not count against the retry policy. Tasks
 * that are already running continue. A second throttle may extend the first one but cannot shorten it.
 *
 * With `of: 'concurrencyKey'`, only the tasks with the same concurrency key are throttled.
 *
 * @example throw rateLimited('30s')
 * @throws BullpenError `invalid_duration`, or `invalid_request` if `of` is unknown.
 */
export function rateLimited(delay: Duration, options?: RateLimitedOptions): RateLimited {
  return new RateLimited(delay, options)
}
