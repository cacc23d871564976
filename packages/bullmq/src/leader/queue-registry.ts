// The registry of a namespace's queues. The leader works on every registered queue, whatever its own catalogue contains.
import { leaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { registerQueuesScript } from '../scripts/leader/register-queues.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface RegisteredQueue {
  readonly name: string
  /**
   * How long the queue's completed tasks are kept, in ms. Undefined if no consumer has stored it. The leader then removes no
   * completed tasks of the queue.
   */
  readonly completedRetentionMs?: number | undefined
}

export interface Registering {
  /**
   * Whether the retentions replace stored ones. A consumer that opens replaces them. Repeated registrations do not, so that of
   * several consumers the one that opened last decides.
   */
  readonly replaces: boolean
}

/**
 * Registers queues. Atomic and idempotent. Takes one round trip. Returns false, without writing anything, if the namespace does not
 * have this version's schema, or has lost its data.
 */
export async function registerQueues(
  redis: Commander,
  namespace: string,
  queues: readonly RegisteredQueue[],
  { replaces }: Registering,
): Promise<boolean> {
  const args = { schemaVersion: SCHEMA_VERSION, replaces: replaces ? '1' : '' }
  const registered = queues.flatMap(({ name, completedRetentionMs }) => [name, completedRetentionMs ?? ''])
  return runScript(redis, registerQueuesScript, leaderKeys(namespace), args, registered)
}

/** Returns all registered queues. Takes one round trip. */
export async function registeredQueues(redis: Commander, namespace: string): Promise<readonly RegisteredQueue[]> {
  const stored = await redis.hgetall(leaderKeys(namespace).registry)
  return Object.entries(stored).map(([name, keptMs]) => ({
    name,
    completedRetentionMs: keptMs === '' ? undefined : Number(keptMs),
  }))
}
