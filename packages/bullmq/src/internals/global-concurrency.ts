// Supports global concurrency: when a process frees a slot and does not refill it, this wakes the other processes.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/**
 * Adds BullMQ's wake marker if the queue has a concurrency limit, room below that limit, and waiting tasks.
 *
 * KEYS: meta, active, wait, prioritized, marker. No ARGV. Returns nothing.
 * BullMQ adds no marker when a task ends in a process that does not fetch another one because it is paused, is draining or was
 * resized. Workers that were refused a task because of the limit wait for a marker, for at most 5 s.
 */
const WAKE = `
local settings = redis.call('HMGET', KEYS[1], 'concurrency', 'paused')
local limit = tonumber(settings[1] or '0')
if limit == 0 or settings[2] or redis.call('LLEN', KEYS[2]) >= limit then return end
if redis.call('LLEN', KEYS[3]) + redis.call('ZCARD', KEYS[4]) > 0 then redis.call('ZADD', KEYS[5], 0, '0') end
`

/** Takes one round trip. */
export async function wakeIdleConsumers(
  redis: Redis,
  { meta, active, wait, prioritized, marker }: QueueKeys,
): Promise<void> {
  await redis.eval(WAKE, 5, meta, active, wait, prioritized, marker)
}
