// Enforces the rate of each API key in each queue, for the memory broker.
import { EnqueueRateError } from '@bullpen/contract'
import type { GiveBack, NewTask } from '@bullpen/engine'
import {
  type Clock,
  type LimitedTokens,
  msUntilTokens,
  rateExceeded,
  rateInQueue,
  type TokenBucket,
  tokensIn,
} from '@bullpen/engine/internal'

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

  /**
   * Takes all of these tokens or none. Returns the function that gives them back.
   *
   * @throws EnqueueRateError if one of the queues has too few.
   */
  takeInQueues(apiKeyName: string, limited: readonly LimitedTokens[]): GiveBack {
    const at = this.#clock.now()
    for (const { queue, rate, tokens: wanted } of limited) {
      const tokens = tokensIn(this.#buckets.get(nameOf({ queue, apiKeyName })), at, rate)
      if (tokens + ROUNDING >= wanted) continue
      throw rateExceeded({
        apiKeyName,
        queue,
        rate,
        wanted,
        retryAfterMs: Math.ceil(msUntilTokens(tokens, wanted, rate)),
      })
    }
    for (const each of limited) this.#change(apiKeyName, each, -each.tokens)
    return async (unused) => {
      for (const each of limited) this.#change(apiKeyName, each, unused.get(each.queue) ?? 0)
    }
  }

  #change(apiKeyName: string, { queue, rate }: LimitedTokens, by: number): void {
    const at = this.#clock.now()
    const name = nameOf({ queue, apiKeyName })
    this.#buckets.set(name, { tokens: Math.min(rate.max, tokensIn(this.#buckets.get(name), at, rate) + by), at })
  }
}

function nameOf({ queue, apiKeyName }: Pick<NewTask, 'queue' | 'apiKeyName'>): string {
  return `${queue} ${apiKeyName}`
}
