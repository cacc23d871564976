-- Blocked lanes: the lanes that may not start a task.
--
-- The sorted set `blocked-lanes` has them by the pass with which they take turns again. They are not in `turns`, so they cost nothing,
-- however many tasks wait in them. A lane that is blocked until some time is also in `lane-times`, by that time (ms since 1970). The field
-- `time` of `turn-state` keeps the pass of the turn in which a lane was last blocked, in case no lane takes turns then.
--
-- A lane with a task is either in `turns` or in `blocked-lanes`. If a lane in `turns` has a task that may start, the marker exists, so that
-- an idle worker fetches.
--
-- resume_lane(name, pass)  lets a blocked lane take turns again: at its own pass, which is given, or at that of the lane that is next if
--                          that is greater. A lane that was blocked for a long time therefore gets no more than its turn
-- wake_first(need)         lets the first lane take turns again that waits with this need (limiters), if it is blocked, with the pass of
--                          its ticket

local function resume_lane(name, pass)
  redis.call('ZREM', base .. 'blocked-lanes', name)
  local first = redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
  local time = redis.call('HGET', base .. 'turn-state', 'time')
  redis.call('ZADD', base .. 'turns', math.max(pass, first[2] or 0, time or 0), name)
  if redis.call('ZSCORE', base .. 'lanes', name) then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function wake_first(need)
  local first, ticket = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
  if first and redis.call('ZREM', base .. 'blocked-lanes', first) == 1 then
    redis.call('ZADD', base .. 'turns', ticket, first)
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end
