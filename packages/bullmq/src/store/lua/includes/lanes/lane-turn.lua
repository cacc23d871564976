-- The turn of a lane that something limits (turns.lua): whether its next task may start, and how its next turn begins.
--
-- read_lane(name, obstacles)           returns a lane: its `name`, `key` and `needs`, the `limit` and the `rate` of its key, and
--                                      `starts_at` if it may start a task only then. `obstacles` are those of queue-features.lua
-- open_turn(name, pass, obstacles)     returns the lane for its turn, with its `pass`. The start already counts for the key (`active`),
--                                      because a lane that takes turns can nearly always start a task
-- holds_up(turn)                       blocks the lane if it may start no task, and returns whether it has done so
-- end_turn(turn, id, lane, obstacles)  must be called after the start of this task, whose field `lane` this is. Returns whether the lane
--                                      continues to take turns
-- end_idle_turn(turn, is_empty)        must be called after a turn in which nothing has started. `is_empty` is whether the lane had no task
--
-- `base` is the prefix of the queue's keys.
--- @include held-places
--- @include gates

local function read_lane(name, obstacles)
  local key, needs = split_lane(name)
  local lane = { name = name, key = key, needs = needs }
  if obstacles.has_limits and key ~= '' then
    local limit, rate = limits_of_key(key)
    lane.limit, lane.rate = limit, rate and open_rate(key, rate) or nil
  end
  lane.starts_at = key_starts_at(key, lane.rate, obstacles.has_throttles)
  return lane
end

local function open_turn(name, pass, obstacles)
  local turn = read_lane(name, obstacles)
  turn.pass = pass
  if obstacles.has_limits and turn.key ~= '' and not turn.starts_at then
    turn.active = count_key(turn.key, 1)
  end
  -- If the queue limits nothing, needs cost nothing either.
  turn.is_limited = turn.needs and (obstacles.is_counted or redis.call('EXISTS', base .. 'waited-needs') == 1)
  return turn
end

-- Blocks a lane whose key may not start another task. `pass` is that of the lane's next turn, and `time` the one that all lanes have
-- reached, or nil. A lane with needs waits for its key as for a limiter, so that one of the key's lanes is woken after the other.
local function wait_for_key(turn, pass, time)
  local name, starts_at = turn.name, turn.starts_at
  if turn.is_limited and not starts_at then
    return limiters().wait_for(name, { key_need(turn.key) }, pass, time)
  end
  block_lane(name, pass)
  redis.call('HSET', base .. 'turn-state', 'time', time or pass)
  if starts_at then
    redis.call('ZADD', base .. 'lane-times', whole(starts_at), name)
  end
end

local function holds_up(turn)
  local name, key, needs, pass = turn.name, turn.key, turn.needs, turn.pass
  local is_at_limit = turn.starts_at or turn.limit and turn.active > turn.limit
  -- An empty lane waits for nothing: end_idle_turn ends its turn.
  if turn.is_limited and not redis.call('ZSCORE', base .. 'lanes', name) then
    return false
  end
  if is_at_limit then
    if turn.is_limited then
      limiters().leave_waiters(name, key, needs, not turn.starts_at and 'key' or nil)
    end
    wait_for_key(turn, pass, nil)
    return true
  end
  local refused, time
  if turn.is_limited then
    refused, time = limiters().refusals(name, key, needs, pass)
  end
  if refused then
    limiters().wait_for(name, refused, pass, time)
    if string.find(refused[1], '^service:') then
      gates().note(refused[1])
    end
  end
  return refused ~= nil
end

-- Returns the pass from which the lane counts its turn. A lane that has waited for a limiter has kept its place among the lanes that wait,
-- but gets no more than its turn among all lanes.
local function reached_pass(turn)
  local name, pass = turn.name, turn.pass
  if not turn.is_limited or redis.call('EXISTS', base .. 'waited-needs') == 0 then
    return pass
  end
  local other = redis.call('ZRANGE', base .. 'turns', 1, 1, 'WITHSCORES')
  local time = math.max(other[2] or 0, redis.call('HGET', base .. 'turn-state', 'time') or 0)
  return limiters().leave_waiters(name, turn.key, turn.needs) and math.max(pass, time) or pass
end

local function end_turn(turn, id, lane, obstacles)
  local name, key, needs, passes = turn.name, turn.key, turn.needs, base .. 'key-passes'
  local pass = reached_pass(turn)
  local key_pass = obstacles.has_key_passes and tonumber(redis.call('ZSCORE', passes, key)) or nil
  local next_pass = math.max(pass, key_pass or pass) + 1 / lane_weight(lane)
  if key_pass or needs then
    redis.call('ZADD', passes, next_pass, key)
  end
  if turn.rate then
    count_key_start(turn.rate)
    turn.starts_at = key_starts_at(key, turn.rate, false)
  end
  if turn.is_limited then
    limiters().take(needs)
  end
  if needs and string.find(needs, 'service:', 1, true) then
    gates().admit(id, needs)
  end
  if turn.starts_at or turn.limit and turn.active >= turn.limit then
    wait_for_key(turn, next_pass, pass)
    return false
  end
  redis.call('ZADD', base .. 'turns', next_pass, name)
  local has_tasks = turn.is_limited and redis.call('ZSCORE', base .. 'lanes', name)
  local refused = has_tasks and limiters().refusals(name, key, needs, next_pass)
  if refused then
    limiters().wait_for(name, refused, next_pass, pass)
  end
  return not refused
end

local function end_idle_turn(turn, is_empty)
  if is_empty and turn.is_limited then
    limiters().leave_waiters(turn.name, turn.key, turn.needs)
  end
  if is_empty and turn.needs then
    redis.call('ZREMRANGEBYSCORE', base .. 'key-passes', '-inf', turn.pass)
  end
  if turn.active then
    count_key(turn.key, -1)
  end
end
