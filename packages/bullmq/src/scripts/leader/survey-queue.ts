// Checks one queue for the leader: does the housekeeping that takes only a few commands, and returns which other work is due.
import { inLanes } from '../../internals/turns/lanes.ts'
import { FORGET_TURNS } from '../../internals/turns/turn-steps.ts'
import { CLOSED_BY_OUTBOX } from '../../outbox/outbox-steps.ts'
import { FENCE, TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/** What a queue may need from its leader (leader/housekeeping.ts). An idle queue does not need anything. */
export type Duty =
  | 'requeueLost'
  | 'expire'
  | 'runSchedules'
  | 'watchSchedules'
  | 'repeatCancels'
  | 'cancelDrained'
  | 'cancelByRules'
  | 'removeOld'
  | 'removeUniqueKeys'
  | 'reportFingerprints'
  | 'changeDead'
  | 'forwardOutbox'
  | 'countActive'
  | 'repairIndex'

/** How early the leader begins to wait for a schedule that will be due, in ms. Must be longer than a round of the leader. */
export const SCHEDULE_HORIZON_MS = 2_000

/** How often the active tasks are counted, by concurrency key and by what they hold of limiters, in ms (./count-active.ts). */
const COUNT_EVERY_MS = 30_000

export interface Survey {
  /** The highest fencing number of any leader that has worked on the queue. If it is above the caller's, nothing was written. */
  readonly fencing: number
  readonly duties: readonly Duty[]
}

/**
 * - KEYS: the names below.
 * - ARGV: the leader's fencing number, the current time (ms since 1970), the mark of a throttle, the queue's retention as JSON
 *   ('' if no consumer has registered one), how often the index is compared entry by entry in ms, the time before which events are
 *   dropped in ms since 1970 ('' if no consumer has registered one), the prefix of the queue's keys.
 *
 * Returns a {@link Survey}. O(1), except that finding a due task is O(log n).
 *
 * The index needs a repair if the sizes of a divided set and of its parts differ (internals/status/status-index.ts), or if the
 * conservation law does not hold: accepted = the tasks in all structures + removed. The sum of the unfinished tasks' bytes needs
 * a repair if it is negative, if it is 0 although there are unfinished tasks, or if it is not 0 although there are none. The
 * index and the sum are also compared with the tasks, entry by entry, at intervals. The time of the last comparison, by Redis's
 * clock, is stored with the totals, so that a comparison becomes due whichever process leads, and remains due until a leader has
 * completed it (repair-totals.ts). A queue that was never compared counts as compared at its first survey.
 *
 * The chores:
 * - Removes the placeholder rate of a throttle that has ended, in case the process that started the throttle has ended too
 *   (unthrottle.ts).
 * - Adds BullMQ's wake marker if tasks may start, and the queue is neither paused nor full. BullMQ does not add a marker when a
 *   task ends in a process that does not fetch another task because the process is paused, is draining or was resized. If a
 *   process is killed, a marker that it has just received is lost. Without a marker, idle workers look for tasks only every 10 s.
 * - Deletes what is stored about turns if no task waits.
 * - Drops old events, in whole blocks of the stream. If no whole block is old, drops the old events of the oldest block.
 */
export const surveyQueueScript = defineScript({
  name: 'survey-queue',
  kind: 'frees',
  keys: [
    'leader',
    'meta',
    'totals',
    'limiter',
    'marker',
    'wait',
    'active',
    'prioritized',
    'lanes',
    'turns',
    'turnState',
    'laneTimes',
    'keyLimits',
    'capacities',
    'waitingChildren',
    'delayed',
    'scheduled',
    'retrying',
    'completed',
    'failed',
    'dead',
    'cancelled',
    'expired',
    'expiries',
    'scheduleTimes',
    'schedules',
    'scheduleTroubles',
    'cancelling',
    'cancelRules',
    'uniqueKeys',
    'newFingerprints',
    'deadRequests',
    'apiKeyTasks',
    'taskEvents',
    'outbox',
    'settings',
  ],
  args: ['fencing', 'now', 'mark', 'retention', 'compareEveryMs', 'eventsSince', 'base'],
  lua: `${TIME}${FENCE}
if is_deposed(leader, fencing) then return { tonumber(redis.call('GET', leader)) } end
local found = { tonumber(fencing) }

local paused, concurrency, max = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max'))
-- A full outbox opens the queue when its entries are deleted. This one was deleted as a whole, by somebody else.
if paused == '${CLOSED_BY_OUTBOX}' and redis.call('EXISTS', outbox) == 0 then
  redis.call('HDEL', meta, 'paused')
  redis.call('HDEL', totals, 'outboxBytes')
  paused = nil
end
if max == mark and redis.call('GET', limiter) ~= mark then redis.call('HDEL', meta, 'max', 'duration') end
local running = redis.call('LLEN', active)
local waiting = redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) + ${inLanes('turnState')}
if waiting == 0 then
  local call = redis.call
  ${FORGET_TURNS}
end
local may_start = redis.call('EXISTS', wait, prioritized, turns) > 0
  or #redis.call('ZRANGEBYSCORE', laneTimes, '-inf', now, 'LIMIT', 0, 1) > 0
if may_start and not paused and (not concurrency or running < tonumber(concurrency)) then
  redis.call('ZADD', marker, 0, '0')
end

if eventsSince ~= '' and redis.call('XTRIM', taskEvents, 'MINID', '~', eventsSince) == 0 then
  redis.call('XTRIM', taskEvents, 'MINID', eventsSince)
end

local function needs(duty) found[#found + 1] = duty end
if running > 0 then needs('requeueLost') end
if #redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1) > 0 then needs('expire') end
if #redis.call('ZRANGEBYSCORE', scheduleTimes, '-inf', whole(millis() + ${SCHEDULE_HORIZON_MS}), 'LIMIT', 0, 1) > 0 then
  needs('runSchedules')
end
if redis.call('EXISTS', schedules, scheduleTroubles) > 0 then needs('watchSchedules') end
if redis.call('EXISTS', cancelling) == 1 then needs('repeatCancels') end
local drain, done = unpack(redis.call('HMGET', settings, 'drain', 'cancelledDrain'))
drain = drain and cjson.decode(drain) or {}
if drain.cancelledBy and drain.command ~= done then needs('cancelDrained') end
if redis.call('EXISTS', cancelRules) == 1 then needs('cancelByRules') end
if redis.call('EXISTS', uniqueKeys) == 1 then needs('removeUniqueKeys') end
if redis.call('EXISTS', newFingerprints) == 1 then needs('reportFingerprints') end
if redis.call('EXISTS', deadRequests) == 1 then needs('changeDead') end
if redis.call('EXISTS', outbox) == 1 then needs('forwardOutbox') end

local function has_old(set, kept)
  if kept.count and redis.call('ZCARD', set) > kept.count then return true end
  local before = kept.ageMs and string.format('(%.0f', now - kept.ageMs)
  return before and #redis.call('ZRANGEBYSCORE', set, '-inf', before, 'LIMIT', 0, 1) > 0
end
local kept = retention ~= '' and cjson.decode(retention) or {}
for status, set in pairs({ completed = completed, dead = dead, cancelled = cancelled, expired = expired }) do
  if kept[status] and has_old(set, kept[status]) then
    needs('removeOld')
    break
  end
end

local function size(...)
  local sum = 0
  for _, set in ipairs({ ... }) do sum = sum + redis.call('ZCARD', set) end
  return sum
end
local ended, later = size(failed), size(delayed)
local accepted, removed, bytes, comparedAt, countedAt =
  unpack(redis.call('HMGET', totals, 'accepted', 'removed', 'bytes', 'comparedAt', 'countedAt'))
local time = millis()
if time - (countedAt or 0) >= ${COUNT_EVERY_MS} and redis.call('EXISTS', keyLimits, capacities) > 0 then needs('countActive') end
if not comparedAt then redis.call('HSET', totals, 'comparedAt', whole(time)) end
local unfinished = running + waiting + later + size(waitingChildren)
local stored = unfinished + ended + size(completed)
bytes = tonumber(bytes or '0')
if bytes < 0 or (bytes == 0) ~= (unfinished == 0) or unfinished == 0 and redis.call('EXISTS', apiKeyTasks) == 1
  or ended ~= size(dead, cancelled, expired) or later ~= size(scheduled, retrying)
  or (tonumber(accepted or '0') or 0) - (tonumber(removed or '0') or 0) ~= stored
  or comparedAt and time - comparedAt >= tonumber(compareEveryMs) then
  needs('repairIndex')
end
return found
`,
  answer: (reply): Survey => {
    const [fencing, ...duties] = reply as [number, ...Duty[]]
    return { fencing, duties }
  },
})
