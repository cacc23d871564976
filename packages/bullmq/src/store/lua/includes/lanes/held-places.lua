-- What an active task holds: a place of its concurrency key (key-limits.lua), and amounts of limiters (limiters.lua).
--
-- hold_places(id)                            counts a task that becomes active outside of its lane's turn
-- give_back_places(key, needs, has_limits)   gives back what a task has held that is no longer active, and lets the lanes that have waited
--                                            for it take turns again
-- resume_key(key)                            lets the key's lane without needs take turns again, unless it is blocked until some time, and
--                                            wakes the first of its lanes with needs
--
-- `base` is the prefix of the queue's keys.
--- @include lane
--- @include blocked-lanes
--- @include key-limits
--- @include limiters

local function resume_key(key)
  local pass = redis.call('ZSCORE', base .. 'blocked-lanes', key)
  if pass and not redis.call('ZSCORE', base .. 'lane-times', key) then
    resume_lane(key, pass)
  end
  wake_first(key_need(key))
end

local function hold_places(id)
  local lane = redis.call('HGET', base .. id, 'lane')
  if not lane then
    return
  end
  local key, needs = split_lane(lane_name(lane))
  if key ~= '' and redis.call('EXISTS', base .. 'key-limits') == 1 then
    count_key(key, 1)
  end
  if needs then
    limiters().take(needs)
  end
end

local function give_back_places(key, needs, has_limits)
  local left = key ~= '' and has_limits and redis.call('ZADD', base .. 'active-by-key', 'XX', 'INCR', '-1', key)
  if left then
    if tonumber(left) <= 0 then
      redis.call('ZREM', base .. 'active-by-key', key)
    end
    if redis.call('EXISTS', base .. 'blocked-lanes', base .. 'waited-needs') > 0 then
      resume_key(key)
    end
  end
  if needs then
    limiters().give_back(needs)
  end
end
