// Defines the error of tasks that were not stored because their API key has reached a rate.
import { type EnqueueRate, formatEnqueueRate } from '../definition/limits/enqueue-rate.ts'
import { BullpenError } from './errors.ts'

export interface ReachedRate {
  /** The name of the API key. */
  readonly apiKeyName: string
  /** Undefined if the rate is that of all queues together. */
  readonly queue?: string | undefined
  readonly rate: EnqueueRate
  /** After this time, the same call can succeed, unless other callers with the same API key come first. In ms. */
  readonly retryAfterMs: number
  /** How many tokens the request needs, if it is more than one task, and how many there are. */
  readonly tokens?: { readonly needed: number; readonly available: number } | undefined
}

/** The code is `enqueue_rate_exceeded`. Nothing was stored. */
export class EnqueueRateError extends BullpenError {
  readonly reached: ReachedRate

  constructor(reached: ReachedRate) {
    const { apiKeyName, queue, rate, tokens } = reached
    const found =
      tokens === undefined
        ? ''
        : `: the request needs ${tokens.needed} tokens, of which ${tokens.available} are available`
    const limit = `${formatEnqueueRate(rate)}${queue === undefined ? '' : ` in queue '${queue}'`}`
    super(
      'enqueue_rate_exceeded',
      `API key '${apiKeyName}' has reached its rate of ${limit}${found}; nothing was stored, so try again later`,
    )
    this.reached = reached
  }
}
