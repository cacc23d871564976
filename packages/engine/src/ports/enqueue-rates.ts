// Defines the port that limits how fast each API key may enqueue tasks, in all queues together.
import type { EnqueueRate } from '@bullpen/contract'

export interface EnqueueRates {
  /**
   * Takes one token for each task. Nearly always takes the tokens at once and returns undefined, as it does if the API key has no
   * limit. Otherwise returns a promise that resolves once the tokens are taken, after one round trip.
   *
   * @throws EnqueueRateError if there are not enough tokens. The promise rejects with the same error.
   * @throws BullpenError `payload_too_large` if there are more tasks than the limit permits at once, or `redis_unavailable`.
   */
  take(apiKeyName: string, tasks: number): Promise<void> | undefined
}

/** Returns an API key's limit, which applies unless a command has set another one. Returns undefined if there is no limit. */
export type DefinedEnqueueRate = (apiKeyName: string) => EnqueueRate | undefined
