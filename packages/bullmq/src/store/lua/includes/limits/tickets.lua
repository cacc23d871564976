-- Tickets: the lanes that wait for a limiter (limiters.lua), and in which order they start. Two kinds of key belong to them:
--
--   need-waiters:<need>  the lanes that wait because of this need, by their tickets. A lane's ticket is the pass of the turn in which it
--                        met the limit. The lanes with needs that wait for their concurrency key have the need `key:<key>=1`
--   waited-needs         the needs for which lanes wait
--
-- - Lanes that wait for a limiter start strictly in the order of their tickets. A lane keeps its tickets until one of its tasks starts, so
--   a large need is not starved by small ones. It gets a ticket at each limiter that refuses it. The tickets of a lane have the same pass,
--   so no two lanes wait for each other.
-- - A lane that waits for its key, or for a time, gives its tickets back. So does a lane that needs more than a capacity: it can never
--   start, and must not hold up others. It waits at that limiter alone, where it is passed over until the capacity is raised.
-- - What is given back wakes the first lane that waits for the limiter: the lane takes turns again, with the pass of its ticket. A lane
--   that gives its ticket back wakes the next one, whether or not its task has started. One wake-up thus reaches each lane that may start.
--
-- After each script, besides what blocked-lanes.lua says:
--
-- 1. A lane with a ticket is blocked, or has been woken and takes turns.
-- 2. The first lane that waits for a limiter has been woken, or some limiter refuses it.
--
-- first_waiter(limiter)                  the first lane that waits for the limiter, and its ticket
-- wake(limiter)                          wakes the first lane that waits for the limiter
-- wait_for(name, refused, pass, time)    blocks a lane until it is woken because of one of these needs. `time` is the pass that all lanes
--                                        have reached, or nil
-- leave_key(name, key)                   gives back a lane's ticket for its key, and wakes the next lane. Returns whether it had one
-- leave_waiters(name, key, needs, kept)  gives back all of a lane's tickets, and wakes the next lanes. `kept` is a limiter, or 'key', for
--                                        which the lane keeps its ticket. Returns whether it has given one back
--
-- `each_need` and `capacity_of` are declared before the include.
--- @include blocked-lanes
--- @include is-after

-- Returns the first lane that waits for the limiter, and its ticket. Lanes that need more than the capacity are passed over.
local function first_waiter(limiter)
  local capacity, first, ticket = capacity_of(limiter), nil, nil
  local needs = redis.call('ZRANGEBYLEX', base .. 'waited-needs', '[' .. limiter .. '=', '(' .. limiter .. '>')
  for _, need in ipairs(needs) do
    if not capacity or tonumber(string.match(need, '%d+$')) <= capacity then
      local lane, score = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
      local at = tonumber(score)
      if lane and (not first or at < ticket or at == ticket and is_after(first, lane)) then
        first, ticket = lane, at
      end
    end
  end
  return first, ticket
end

local function wake(limiter)
  wake_lane(first_waiter(limiter))
end

-- Returns whether the lane had a ticket for this need.
local function leave(name, need)
  local waiters = base .. 'need-waiters:' .. need
  if redis.call('ZREM', waiters, name) == 0 then
    return false
  end
  if redis.call('EXISTS', waiters) == 0 then
    redis.call('ZREM', base .. 'waited-needs', need)
  end
  return true
end

local function leave_key(name, key)
  local has_left = leave(name, key_need(key))
  if has_left then
    wake_first(key_need(key))
  end
  return has_left
end

local function leave_waiters(name, key, needs, kept)
  if redis.call('EXISTS', base .. 'waited-needs') == 0 then
    return false
  end
  local has_left = false
  for limiter, amount in each_need(needs) do
    if limiter ~= kept and leave(name, limiter .. '=' .. amount) then
      has_left = true
      wake(limiter)
    end
  end
  return kept ~= 'key' and leave_key(name, key) or has_left
end

local function wait_for(name, refused, pass, time)
  for _, need in ipairs(refused) do
    redis.call('ZADD', base .. 'need-waiters:' .. need, 'NX', pass, name)
    redis.call('ZADD', base .. 'waited-needs', '0', need)
  end
  block_lane(name, pass)
  local state = base .. 'turn-state'
  if time and time > (tonumber(redis.call('HGET', state, 'time')) or -1) then
    redis.call('HSET', state, 'time', time)
  end
end
