#!lua flags=allow-oom
-- Checks one queue for the leader: does the housekeeping that takes only a few commands, and returns which other work is due. O(1), except
-- that finding a due task is O(log n).
--
-- KEYS[1]   leader             the highest fencing number of the queue's leaders
-- KEYS[2]   meta               BullMQ's settings of the queue
-- KEYS[3]   totals             the queue's totals
-- KEYS[4]   limiter            BullMQ's counter of a rate, or the mark of a throttle
-- KEYS[5]   marker             wakes idle workers
-- KEYS[6]   wait               the waiting tasks
-- KEYS[7]   active             the active ones
-- KEYS[8]   prioritized        those that wait with a priority
-- KEYS[9]   lanes              the lanes that have tasks
-- KEYS[10]  turns              the lanes that take turns
-- KEYS[11]  turnState          how many tasks are in lanes
-- KEYS[12]  laneTimes          the lanes that wait for a time
-- KEYS[13]  keyLimits          the limits of concurrency keys
-- KEYS[14]  capacities         the capacities of limiters
-- KEYS[15]  waitingChildren    the parents of a team's own flows
-- KEYS[16]  delayed            the scheduled and retrying tasks
-- KEYS[17]  scheduled          the scheduled ones
-- KEYS[18]  retrying           the retrying ones
-- KEYS[19]  completed          the completed tasks
-- KEYS[20]  failed             the dead, cancelled and expired ones
-- KEYS[21]  dead               the dead ones
-- KEYS[22]  cancelled          the cancelled ones
-- KEYS[23]  expired            the expired ones
-- KEYS[24]  expiries           the tasks by when their queue timeout passes
-- KEYS[25]  scheduleTimes      the schedules by when they are due
-- KEYS[26]  schedules          the schedules
-- KEYS[27]  scheduleTroubles   those that could not be run
-- KEYS[28]  cancelling         the running tasks that are cancelled
-- KEYS[29]  cancelRules        the cancels by filter
-- KEYS[30]  uniqueKeys         the unique keys in use
-- KEYS[31]  newFingerprints    the kinds of errors that were not reported
-- KEYS[32]  deadRequests       the requests to change dead tasks
-- KEYS[33]  apiKeyTasks        the number of unfinished tasks by API key
-- KEYS[34]  taskEvents         the stream of the tasks' events
-- KEYS[35]  outbox             what has to be delivered
-- KEYS[36]  settings           the queue's settings
-- KEYS[37]  stalledCheck       the mark of the check for lost jobs of a Worker that was not attached
-- KEYS[38]  unattached         what is known of such Workers
-- ARGV[1]   fencing            the leader's fencing number
-- ARGV[2]   now                the current time, in ms since 1970
-- ARGV[3]   base               the prefix of the queue's keys
-- ARGV[4]   retention          the queue's retention as JSON, or '' if no consumer has registered one
-- ARGV[5]   eventsSince        the time before which events are dropped, in ms since 1970, or '' if no consumer has registered one
-- ARGV[6]   compareEveryMs     how often the index is compared with the tasks, entry by entry
-- ARGV[7]   countEveryMs       how often the active tasks of limits are counted
-- ARGV[8]   scheduleHorizonMs  how early a schedule is due
-- ARGV[9]   throttleMark       the placeholder rate of a throttle
-- ARGV[10]  outboxMark         what `meta` has in `paused` while a full outbox closes the queue
--
-- Returns `[fencing: number, duties: Duty[]]`: the highest fencing number of any leader that has worked on the queue, and what the queue
-- needs. If that number is above the caller's, nothing was written.
--- @type Duty from ./survey.ts
local leader, meta, totals, limiter, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local wait, active, prioritized, lanes, turns, turnState = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local laneTimes, keyLimits, capacities, waitingChildren = KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local delayed, scheduled, retrying, completed, failed = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local dead, cancelled, expired, expiries, scheduleTimes = KEYS[21], KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local schedules, scheduleTroubles, cancelling, cancelRules = KEYS[26], KEYS[27], KEYS[28], KEYS[29]
local uniqueKeys, newFingerprints, deadRequests, apiKeyTasks = KEYS[30], KEYS[31], KEYS[32], KEYS[33]
local taskEvents, outbox, settings, stalledCheck, unattached = KEYS[34], KEYS[35], KEYS[36], KEYS[37], KEYS[38]
local fencing, now, base, retention, eventsSince = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local compareEveryMs, countEveryMs, scheduleHorizonMs = ARGV[6], ARGV[7], ARGV[8]
local throttleMark, outboxMark = ARGV[9], ARGV[10]
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
