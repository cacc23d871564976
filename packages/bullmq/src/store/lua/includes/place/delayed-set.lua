-- The tasks that are not due yet. They are in BullMQ's set `delayed`, and each task of Bullpen's queues is also in one of its parts,
-- the sets `scheduled` and `retrying`, with the same score: the time at which the task is due, in ms since 1970, times DELAYED_STEP.
-- BullMQ orders the jobs that are due at the same time by a counter in the lower bits.
--
-- enter_delayed(base, id, due, part)  adds a task to `delayed` and to `part`, and returns its score. `part` is nil in a queue that is not
--                                     Bullpen's
-- leave_delayed(base, id)             removes a task from `delayed` and its parts, and returns whether it was in `delayed`
-- change_due(base, id, due, part)     changes when a task of `delayed` and `part` is due
-- next_due(base)                      returns when the first of the tasks is due or, if that is earlier, when a lane may start a task again
--                                     (blocked-lanes.lua); or nil
--- @include time

local DELAYED_STEP = 0x1000

local function enter_delayed(base, id, due, part)
  local least, most = due * DELAYED_STEP, (due + 1) * DELAYED_STEP - 1
  local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', whole(most), whole(least), 'WITHSCORES', 'LIMIT', 0, 1)
  local score = whole(last[2] and math.min(last[2] + 1, most) or least)
  redis.call('ZADD', base .. 'delayed', score, id)
  if part then
    redis.call('ZADD', base .. part, score, id)
  end
  return score
end

local function leave_delayed(base, id)
  if redis.call('ZREM', base .. 'delayed', id) == 0 then
    return false
  end
  redis.call('ZREM', base .. 'scheduled', id)
  redis.call('ZREM', base .. 'retrying', id)
  return true
end

-- BullMQ adds the same event if the delay of a job changes.
local function change_due(base, id, due, part)
  local score = whole(due * DELAYED_STEP)
  redis.call('ZADD', base .. 'delayed', score, id)
  redis.call('ZADD', base .. part, score, id)
  redis.call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', whole(due))
end

local function next_due(base)
  local first = redis.call('ZRANGE', base .. 'delayed', '0', '0', 'WITHSCORES')[2]
  local due = first and math.floor(first / DELAYED_STEP) or math.huge
  local lane_time = tonumber(redis.call('ZRANGE', base .. 'lane-times', '0', '0', 'WITHSCORES')[2]) or math.huge
  local at = math.min(due, lane_time)
  return at < math.huge and at or nil
end
