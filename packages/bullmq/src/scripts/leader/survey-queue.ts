// Surveys one queue for the leader: does the chores that cost only a few commands, and names the duties that need more.
import { FENCE } from '../includes/fence.ts'
import { defineScript } from '../script.ts'

/** What a queue may need from its leader. A queue that is idle needs nothing. */
export type Duty = 'requeueLost' | 'expire' | 'repeatCancels'

export interface Survey {
  /** The highest fencing number of a leader that has worked on the queue. If it is above the caller's, nothing was written. */
  readonly fencing: number
  readonly duties: readonly Duty[]
}

/**
 * KEYS: the names below. ARGV: the leader's fencing number, now in ms, the mark of a throttle. Answers a {@link Survey}. O(1),
 * except that finding a due task is O(log n).
 *
 * The chores:
 * - Removes the placeholder rate of a throttle that has ended, in case the process that started the throttle has ended too
 *   (unthrottle.ts).
 * - Adds BullMQ's wake marker if tasks wait although the queue is neither paused nor full. BullMQ adds no marker when a task ends
 *   in a process that does not fetch another one because it is paused, is draining or was resized, and a process that is killed
 *   takes with it the marker that it has just received. Idle workers otherwise look for tasks only every few seconds.
 */
export const surveyQueueScript = defineScript({
  name: 'survey-queue',
  kind: 'frees',
  keys: ['leader', 'meta', 'limiter', 'active', 'wait', 'prioritized', 'marker', 'expiries', 'cancelling'],
  args: ['fencing', 'now', 'mark'],
  lua: `${FENCE}
if is_deposed(leader, fencing) then return { tonumber(redis.call('GET', leader)) } end
local found = { tonumber(fencing) }

local paused, concurrency, max = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
if max == mark and redis.call('GET', limiter) ~= mark then redis.call('HDEL', meta, 'max', 'duration') end
local running = redis.call('LLEN', active)
if not paused and (not concurrency or running < tonumber(concurrency))
  and redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) > 0 then
  redis.call('ZADD', marker, 0, '0')
end

local function needs(duty) found[#found + 1] = duty end
if running > 0 then needs('requeueLost') end
if #redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1) > 0 then needs('expire') end
if redis.call('EXISTS', cancelling) == 1 then needs('repeatCancels') end
return found
`,
  answer: (reply): Survey => {
    const [fencing, ...duties] = reply as [number, ...Duty[]]
    return { fencing, duties }
  },
})
