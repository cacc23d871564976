// Global concurrency: when a process frees a slot and does not refill it, wakes the other processes.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/**
 * Adds BullMQ's wake marker if the queue has a concurrency limit, free room and waiting tasks.
 *
 * KEYS: meta, active, wait, prioritized, marker. No ARGV, no answer.
 * BullMQ adds no marker when a task ends in a process that fetches no further one, because the process is paused, drains
 * or was made smaller. Workers that were refused a task by the limit wait for a marker, at most 5 s.
 */
const WAKE = `
local settings = redis.call('HMGET', KEYS[1], 'concurrency', 'paused')
local limit = tonumber(settings[1] or '0')
if limit == 0 or settings[2] or redis.call('LLEN', KEYS[2]) >= limit then return end
if redis.call('LLEN', KEYS[3]) + redis.call('ZCARD', KEYS[4]) > 0 then redis.call('ZADD', KEYS[5], 0, '0') end
`

/** One round trip. */
export async function wakeIdleConsumers(
  redis: Redis,
  { meta, active, wait, prioritized, marker }: QueueKeys,
): Promise<void> {
  await redis.eval(WAKE, 5, meta, active, wait, prioritized, marker)
}
