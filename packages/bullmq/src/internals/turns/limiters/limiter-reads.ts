// Reads the capacities of a queue's limiters, and how much of them the active tasks hold.
import { type LimiterStatus, parseLimiter } from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import type { QueueKeys } from '../../../keys.ts'

/** Adds the commands that read the limiters. O(limiters). */
export function addLimiterReads(pipeline: ChainableCommander, { capacities, inUse }: QueueKeys): void {
  pipeline.hgetall(capacities).zrange(inUse, '0', '-1', 'WITHSCORES')
}

/** Decodes the replies to {@link addLimiterReads}. Returns undefined if there are no limiters. */
export function decodeLimiters([capacities, inUse]: readonly unknown[]): readonly LimiterStatus[] | undefined {
  const held = inUse as readonly string[]
  const found = Object.entries(capacities as Readonly<Record<string, string>>).flatMap(([limiter, capacity]) => {
    const parsed = parseLimiter(limiter)
    const at = held.indexOf(limiter)
    const used = at === -1 ? 0 : Number(held[at + 1])
    return parsed === undefined ? [] : [{ ...parsed, capacity: Number(capacity), inUse: used }]
  })
  if (found.length === 0) return undefined
  return found.toSorted((one, other) => compare(one.kind, other.kind) || compare(one.name, other.name))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}
