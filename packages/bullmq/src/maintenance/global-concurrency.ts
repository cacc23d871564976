// A queue with a cap for its whole fleet: a place that its owner leaves, and takes nothing for, is told to the others.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/**
 * KEYS: meta, active, wait, prioritized, marker. BullMQ wakes nobody when a task ends in a process that fetches no next one: it
 * is paused, drains, or has been made smaller. Those that the cap has sent away wait for a marker, for 5 s at the longest.
 */
const WAKE = `
local known = redis.call('HMGET', KEYS[1], 'concurrency', 'paused')
local cap = tonumber(known[1] or '0')
if cap == 0 or known[2] or redis.call('LLEN', KEYS[2]) >= cap then return end
if redis.call('LLEN', KEYS[3]) + redis.call('ZCARD', KEYS[4]) > 0 then redis.call('ZADD', KEYS[5], 0, '0') end
`

/** One round trip. */
export async function wakeIdleConsumers(
  redis: Redis,
  { meta, active, wait, prioritized, marker }: QueueKeys,
): Promise<void> {
  await redis.eval(WAKE, 5, meta, active, wait, prioritized, marker)
}
