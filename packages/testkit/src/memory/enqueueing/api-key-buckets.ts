// Enforces the rate of each API key in each queue, for the memory broker.
import { EnqueueRateError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { type Clock, msUntilTokens, rateInQueue, type TokenBucket, tokensIn } from '@bullpen/engine/internal'

/** A sum of fractions may be slightly less than the whole token that it stands for. */
const ROUNDING = 1e-6

export class ApiKeyBuckets {
  readonly #clock: Clock
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Checks that there is a token for a task. `pending` is how many tasks the same call stores before it.
   *
   * @throws EnqueueRateError if there is none.
   */
  assertToken(task: NewTask, pending: number): void {
    const rate = rateInQueue(task)
    if (rate === undefined) return
    const tokens = tokensIn(this.#buckets.get(nameOf(task)), this.#clock.now(), rate)
    const wanted = pending + 1
    if (tokens + ROUNDING >= wanted) return
    const { apiKeyName = '', queue } = task
    const retryAfterMs = Math.ceil(msUntilTokens(tokens, wanted, rate))
    throw new EnqueueRateError({ apiKeyName, queue, rate, retryAfterMs })
  }

  /** Takes a token for a task that is stored. */
  take(task: NewTask): void {
    const rate = rateInQueue(task)
    if (rate === undefined) return
    const at = this.#clock.now()
    this.#buckets.set(nameOf(task), { tokens: tokensIn(this.#buckets.get(nameOf(task)), at, rate) - 1, at })
  }
}

function nameOf({ queue, apiKeyName }: NewTask): string {
  return `${queue} ${apiKeyName}`
}
