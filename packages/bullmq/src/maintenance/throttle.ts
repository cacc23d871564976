// A hold: for a while nothing of a queue is started, in any process, by what BullMQ's own scripts look at.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'

/** What BullMQ's counter of starts holds meanwhile: more than any rate. As a rate's own maximum it stands for no rate. */
export const THROTTLE_MARK = `${Number.MAX_SAFE_INTEGER}`

/**
 * KEYS: limiter, meta. ARGV: for how many ms, the mark, 1 when the worker has a rate of its own. BullMQ looks at the counter
 * only where there is a rate: without one, a maximum that nothing reaches stands in for it. Several extend the hold.
 */
export const THROTTLE = `
local held = redis.call('GET', KEYS[1]) == ARGV[2] and redis.call('PTTL', KEYS[1]) or 0
if held < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1]) end
if ARGV[3] ~= '1' and redis.call('HEXISTS', KEYS[2], 'max') == 0 then
  redis.call('HSET', KEYS[2], 'max', ARGV[2], 'duration', 1)
end
`

/** KEYS: limiter, meta. ARGV: the mark. What stood in for a rate costs each start two commands: it goes when the hold is over. */
export const UNTHROTTLE = `
if redis.call('HGET', KEYS[2], 'max') == ARGV[1] and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  redis.call('HDEL', KEYS[2], 'max', 'duration')
end
`

/** For a hold whose process has ended before it. One round trip. */
export async function releaseThrottle(redis: Redis, { limiter, meta }: QueueKeys): Promise<void> {
  await redis.eval(UNTHROTTLE, 2, limiter, meta, THROTTLE_MARK)
}
