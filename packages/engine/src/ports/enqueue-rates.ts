// Defines the port that limits how fast each API key may enqueue tasks, in all queues together.
import type { EnqueueRate } from '@bullpen/contract'

export interface EnqueueRates {
  /**
   * Takes as many tokens as there are tasks. Returns undefined if they were taken at once, as they nearly always are, or if the API
   * key has no limit. Otherwise, the promise resolves once they are taken, after one round trip.
   *
   * @throws EnqueueRateError if there are not enough tokens. The promise rejects with the same error.
   * @throws BullpenError `payload_too_large` if there are more tasks than the limit permits at once, or `redis_unavailable`.
   */
  take(apiKeyName: string, tasks: number): Promise<void> | undefined
}

/** Returns the limit of an API key unless a command has set another one. Undefined means no limit. */
export type DefinedEnqueueRate = (apiKeyName: string) => EnqueueRate | undefined
