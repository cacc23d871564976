// Computes how many tokens a bucket has. Redis's scripts compute this in the same way
// (packages/bullmq/src/store/lua/includes/add/token-bucket.lua).
import type { EnqueueRate } from '@bullpen/contract'

/**
 * The number of tokens at a given time, in ms since any fixed time. While the bucket is being refilled, the number may be a
 * fraction.
 */
export interface TokenBucket {
  readonly tokens: number
  readonly at: number
}

/** Returns the current number of tokens. A bucket that does not exist yet is full. */
export function tokensIn(bucket: TokenBucket | undefined, now: number, { max, perMs }: EnqueueRate): number {
  if (bucket === undefined) return max
  return Math.min(max, bucket.tokens + (Math.max(0, now - bucket.at) * max) / perMs)
}

/** Returns the time until there are `wanted` tokens, in ms. Returns 0 if there are enough already. */
export function msUntilTokens(tokens: number, wanted: number, { max, perMs }: EnqueueRate): number {
  return Math.max(0, ((wanted - tokens) * perMs) / max)
}
