// Supports global concurrency: when a process frees a slot and does not refill it, this wakes the other processes.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'
import { wakeConsumers } from '../scripts/queue/wake-consumers.ts'
import { runScript } from '../scripts/script.ts'

/**
 * BullMQ adds no wake marker when a task ends in a process that does not fetch another one because it is paused, is draining or
 * was resized. Workers that were refused a task because of the limit wait for a marker, for at most 5 s. Takes one round trip.
 */
export async function wakeIdleConsumers(redis: Redis, keys: QueueKeys): Promise<void> {
  await runScript(redis, wakeConsumers, keys, {})
}
