-- Blocked lanes: the lanes that may not start a task.
--
-- The sorted set `blocked-lanes` holds them by the pass with which they will take turns again. They are not in `turns`, so they cost
-- nothing, however many tasks wait in them. A lane that is blocked until some time is also in `lane-times`, by that time (ms since 1970).
-- The field `time` of `turn-state` keeps the pass of the turn in which a lane was last blocked, in case no lane takes turns then.
--
-- After each script:
--
-- 1. A lane with a task is either in `turns` or in `blocked-lanes`.
-- 2. A lane is blocked only if its key has as many active tasks as it may have, has used up its rate, or is throttled (key-limits.lua), or
--    if it waits for a limiter (limiters.lua).
-- 3. If a lane in `turns` has a task that may start, the marker exists, so that an idle worker fetches.
--
-- block_lane(name, pass)        takes a lane out of the turns. `pass` is the pass with which it will take turns again
-- resume_lane(name, pass)       lets a blocked lane take turns again: at its own pass, which is given, or at the pass of the lane that is
--                               next if that is greater. A lane that was blocked for a long time therefore gets no more than its turn
-- wake_lane(name, ticket)       lets a lane that waits for a limiter take turns again, at the pass of its ticket, if it is blocked. `name`
--                               may be nil
-- wake_first(need)              wakes the first lane that waits with this need
-- key_need(key)                 returns the need with which lanes with needs wait for their concurrency key
--
-- `base` is the prefix of the queue's keys.

local function block_lane(name, pass)
  redis.call('ZREM', base .. 'turns', name)
  redis.call('ZADD', base .. 'blocked-lanes', pass, name)
end

local function resume_lane(name, pass)
  redis.call('ZREM', base .. 'blocked-lanes', name)
  local first = redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
  local time = redis.call('HGET', base .. 'turn-state', 'time')
  redis.call('ZADD', base .. 'turns', math.max(pass, first[2] or 0, time or 0), name)
  if redis.call('ZSCORE', base .. 'lanes', name) then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function wake_lane(name, ticket)
  if name and redis.call('ZREM', base .. 'blocked-lanes', name) == 1 then
    redis.call('ZADD', base .. 'turns', ticket, name)
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function wake_first(need)
  local first, ticket = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
  wake_lane(first, ticket)
end

local function key_need(key)
  return 'key:' .. key .. '=1'
end
