// The registry of a namespace's queues. The leader works on every registered queue, whatever its own catalogue contains.
import type { Redis } from 'ioredis'
import { leaderKeys } from '../keys.ts'

/** Producers and consumers call this once when they open. Idempotent. Takes one round trip. */
export async function registerQueues(redis: Redis, namespace: string, queues: readonly string[]): Promise<void> {
  if (queues.length > 0) await redis.sadd(leaderKeys(namespace).queues, ...queues)
}

/** Takes one round trip. */
export async function registeredQueues(redis: Redis, namespace: string): Promise<readonly string[]> {
  return redis.smembers(leaderKeys(namespace).queues)
}
