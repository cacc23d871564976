// Decides how many tokens a bucket has. The scripts in Redis decide in the same way
// (packages/bullmq/src/scripts/includes/token-bucket.ts).
import type { EnqueueRate } from '@bullpen/contract'

/** How many tokens there were at a time, in ms since any fixed time. The number has a fraction while the bucket is refilled. */
export interface TokenBucket {
  readonly tokens: number
  readonly at: number
}

/** Returns how many tokens there are now. A bucket that does not exist yet is full. */
export function tokensIn(bucket: TokenBucket | undefined, now: number, { max, perMs }: EnqueueRate): number {
  if (bucket === undefined) return max
  return Math.min(max, bucket.tokens + (Math.max(0, now - bucket.at) * max) / perMs)
}

/** Returns how long it takes until there are `wanted` tokens, in ms. It is 0 if there are as many now. */
export function msUntilTokens(tokens: number, wanted: number, { max, perMs }: EnqueueRate): number {
  return Math.max(0, ((wanted - tokens) * perMs) / max)
}
