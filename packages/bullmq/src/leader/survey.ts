// Surveys one queue for the leader: does the chores that cost only a few commands, and returns the duties that need more.
import type { Redis } from 'ioredis'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import type { QueueKeys } from '../keys.ts'
import { defineScript, runScript } from '../scripts/script.ts'
import { FENCE } from './fence.ts'

/** What a queue may need from its leader. A queue that is idle needs nothing. */
export type Duty = 'expire' | 'repeatCancels'

/**
 * Returns the highest fencing number of a leader that has worked on the queue, and then the duties. If that number is above the
 * caller's, the script has written nothing and names no duty.
 *
 * The chores:
 * - Removes the placeholder rate of a throttle that has ended, in case the process that started the throttle has ended too. The
 *   placeholder would cost two commands for each task (internals/throttle.ts).
 * - Adds BullMQ's wake marker if tasks wait although the queue is neither paused nor full. BullMQ adds no marker when a task ends
 *   in a process that does not fetch another one because it is paused, is draining or was resized, and a process that is killed
 *   takes with it the marker that it has just received. Idle workers otherwise look for tasks only every few seconds.
 */
const SURVEY = defineScript({
  name: 'survey-queue',
  kind: 'frees',
  keys: ['leader', 'meta', 'limiter', 'active', 'wait', 'prioritized', 'marker', 'expiries', 'cancelling'],
  args: ['fencing', 'now', 'throttleMark'],
  lua: `${FENCE}
if is_deposed(leader, fencing) then return { tonumber(redis.call('GET', leader)) } end
local found = { tonumber(fencing) }

local paused, concurrency, max = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
if max == throttleMark and redis.call('GET', limiter) ~= throttleMark then
  redis.call('HDEL', meta, 'max', 'duration')
end
local running = redis.call('LLEN', active)
if not paused and (not concurrency or running < tonumber(concurrency))
  and redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) > 0 then
  redis.call('ZADD', marker, 0, '0')
end

local function needs(duty) found[#found + 1] = duty end
if #redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1) > 0 then needs('expire') end
if redis.call('EXISTS', cancelling) == 1 then needs('repeatCancels') end
return found
`,
})

export interface Survey {
  /** If this is above the caller's number, a newer leader works on the queue. */
  readonly fencing: number
  readonly duties: readonly Duty[]
}

/** `now` is in ms since 1970. Atomic. Takes one round trip. O(1), except that finding due tasks is O(log n). */
export async function surveyQueue(redis: Redis, keys: QueueKeys, fencing: number, now: number): Promise<Survey> {
  const answer = await runScript(redis, SURVEY, keys, { fencing, now, throttleMark: THROTTLE_MARK })
  const [highest, ...duties] = answer as [number, ...Duty[]]
  return { fencing: highest, duties }
}
