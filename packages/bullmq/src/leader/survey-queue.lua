#!lua flags=allow-oom
-- Checks one queue for the leader: does the housekeeping that takes only a few commands, and returns which other work is due. O(1), except
-- that finding a due task is O(log n).
--
-- KEYS  leader, meta, totals, limiter, marker, wait, active, prioritized, lanes, turns, turnState, laneTimes, keyLimits, capacities
-- KEYS  waitingChildren, delayed, scheduled, retrying, completed, failed, dead, cancelled, expired, expiries, scheduleTimes, schedules
-- KEYS  scheduleTroubles, cancelling, cancelRules, uniqueKeys, newFingerprints, deadRequests, apiKeyTasks, taskEvents, outbox, settings
-- KEYS  stalledCheck, unattached
-- ARGV  fencing, now, base
-- ARGV  retention          the queue's retention as JSON, or '' if no consumer has registered one
-- ARGV  eventsSince        the time before which events are dropped, in ms since 1970, or '' if no consumer has registered one
-- ARGV  compareEveryMs     how often the index is compared with the tasks, entry by entry
-- ARGV  countEveryMs       how often the active tasks of limits are counted
-- ARGV  scheduleHorizonMs  how early a schedule is due
-- ARGV  throttleMark       the placeholder rate of a throttle
-- ARGV  outboxMark         what `meta` has in `paused` while a full outbox closes the queue
--
-- Returns `[fencing: number, duties: Duty[]]`: the highest fencing number of any leader that has worked on the queue, and what the queue
-- needs. If that number is above the caller's, nothing was written.
--- @type Duty from ./survey.ts
--- @include fence
--- @include queue-chores
--- @include forget-turns

if is_deposed(leader, fencing) then
  return { tonumber(redis.call('GET', leader)), {} }
end
local paused, concurrency = reopen_queue(meta, totals, outbox, limiter, throttleMark, outboxMark)
local running = redis.call('LLEN', active)
local in_lanes = tonumber(redis.call('HGET', turnState, 'waiting')) or 0
local waiting = redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) + in_lanes
if waiting == 0 then
  forget_turns(base)
end
-- BullMQ adds no marker when a task ends in a process that fetches no other one, because it is paused, is draining or was resized. A process
-- that is killed loses a marker that it has just received. Without a marker, idle workers look for tasks only every 10 s.
local may_start = redis.call('EXISTS', wait, prioritized, turns) > 0 or has_until(laneTimes, now)
if may_start and not paused and (not concurrency or running < tonumber(concurrency)) then
  redis.call('ZADD', marker, 0, '0')
end
if eventsSince ~= '' then
  drop_events(taskEvents, eventsSince)
end

local duties = {}
local function add(duty, is_due)
  if is_due then
    duties[#duties + 1] = duty
  end
end
local function exists(...)
  return redis.call('EXISTS', ...) > 0
end

local time = millis()
add('requeueLost', running > 0)
add('expire', has_until(expiries, now))
add('runSchedules', has_until(scheduleTimes, whole(time + scheduleHorizonMs)))
add('watchSchedules', exists(schedules, scheduleTroubles))
add('repeatCancels', exists(cancelling))
local drain, done = unpack(redis.call('HMGET', settings, 'drain', 'cancelledDrain'))
drain = drain and cjson.decode(drain) or {}
add('cancelDrained', drain.cancelledBy and drain.command ~= done)
add('cancelByRules', exists(cancelRules))
add('removeUniqueKeys', exists(uniqueKeys))
add('reportFingerprints', exists(newFingerprints))
add('changeDead', exists(deadRequests))
add('forwardOutbox', exists(outbox))
add('reportUnattached', exists(stalledCheck, unattached))

local function size(...)
  local sum = 0
  for _, set in ipairs({ ... }) do
    sum = sum + redis.call('ZCARD', set)
  end
  return sum
end

local kept = retention ~= '' and cjson.decode(retention) or {}
local function has_old(set, of)
  return of
    and (of.count and size(set) > of.count or of.ageMs and has_until(set, string.format('(%.0f', now - of.ageMs)))
end
add(
  'removeOld',
  has_old(completed, kept.completed)
    or has_old(dead, kept.dead)
    or has_old(cancelled, kept.cancelled)
    or has_old(expired, kept.expired)
)

local fields = redis.call('HMGET', totals, 'accepted', 'removed', 'bytes', 'comparedAt', 'countedAt')
local accepted, removed, bytes =
  tonumber(fields[1] or '0') or 0, tonumber(fields[2] or '0') or 0, tonumber(fields[3] or '0')
local compared_at, counted_at = fields[4], fields[5]
add('countActive', time - (counted_at or 0) >= tonumber(countEveryMs) and exists(keyLimits, capacities))

-- A queue that was never compared counts as compared at its first survey. The time by Redis's clock is stored, so that a comparison is due
-- whichever process leads, and remains due until a leader has completed it (internals/status/repair-totals.lua).
if not compared_at then
  redis.call('HSET', totals, 'comparedAt', whole(time))
end
local ended, later = size(failed), size(delayed)
local unfinished = running + waiting + later + size(waitingChildren)
-- The conservation law: every accepted task is in a structure or was removed.
local is_conserved = accepted - removed == unfinished + ended + size(completed)
-- The parts of BullMQ's sets (internals/status/status-index.ts).
local is_divided = ended == size(dead, cancelled, expired) and later == size(scheduled, retrying)
-- The sum of the unfinished tasks' bytes is 0 if there are none, and only then.
local is_charged = bytes >= 0 and (bytes == 0) == (unfinished == 0) and (unfinished > 0 or not exists(apiKeyTasks))
local is_compared = not compared_at or time - compared_at < tonumber(compareEveryMs)
add('repairIndex', not (is_conserved and is_divided and is_charged and is_compared))
return { tonumber(fencing), duties }
