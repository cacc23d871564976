// Throttles a queue by using up BullMQ's own rate limit, so that no process starts one of its tasks until the throttle ends.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/**
 * The value of BullMQ's rate-limit counter (`limiter`) while a queue is throttled. It is larger than any rate limit. As the
 * maximum of a rate (`meta.max`), it stands for "no rate".
 */
export const THROTTLE_MARK = `${Number.MAX_SAFE_INTEGER}`

/**
 * Starts a throttle, or extends the current one.
 *
 * KEYS: limiter, meta. ARGV: the duration in ms, the mark, '1' if the worker has a rate limit of its own. Returns nothing.
 * BullMQ reads the counter only if the queue has a rate, so a queue without one is given a maximum that is never reached.
 */
export const THROTTLE = `
local left = redis.call('GET', KEYS[1]) == ARGV[2] and redis.call('PTTL', KEYS[1]) or 0
if left < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1]) end
if ARGV[3] ~= '1' and redis.call('HEXISTS', KEYS[2], 'max') == 0 then
  redis.call('HSET', KEYS[2], 'max', ARGV[2], 'duration', 1)
end
`

/**
 * Removes the placeholder rate of a throttle that has ended, because it would cost two commands per job.
 *
 * KEYS: limiter, meta. ARGV: the mark. Returns nothing.
 */
export const UNTHROTTLE = `
if redis.call('HGET', KEYS[2], 'max') == ARGV[1] and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  redis.call('HDEL', KEYS[2], 'max', 'duration')
end
`

/** Cleans up after a process that ended before its throttle did. Takes one round trip. */
export async function releaseThrottle(redis: Redis, { limiter, meta }: QueueKeys): Promise<void> {
  await redis.eval(UNTHROTTLE, 2, limiter, meta, THROTTLE_MARK)
}
