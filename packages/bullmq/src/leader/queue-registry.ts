// The registry of a namespace's queues. The leader works on every registered queue, whatever its own catalogue contains.

import { leaderKeys } from '../keys.ts'
import { registerQueuesScript } from '../scripts/leader/register-queues.ts'
import { type Commander, runScript } from '../scripts/script.ts'

/** Registers queues. Producers and consumers call this once when they open. Idempotent. Takes one round trip. */
export async function registerQueues(redis: Commander, namespace: string, queues: readonly string[]): Promise<void> {
  if (queues.length > 0) await runScript(redis, registerQueuesScript, leaderKeys(namespace), {}, queues)
}

/** Returns all registered queues. Takes one round trip. */
export async function registeredQueues(redis: Commander, namespace: string): Promise<readonly string[]> {
  return redis.smembers(leaderKeys(namespace).queues)
}
