-- Limits what all active tasks of a queue together hold of its limiters, across all workers.
--
-- A limiter has a name, which begins with its kind, and a capacity. There are three kinds:
--
--   permits:db           the permits of a resource. The queue's definition says how many there are, and each task definition how many it
--                        needs
--   task:reports.render  the `concurrency` of a task definition. Each of its tasks needs 1
--   service:smtp         a circuit breaker. Its capacity is 0 while no task may start, and absent otherwise (gates.lua). It has no permits,
--                        so nothing is counted for it
--
-- The name of a lane contains what its tasks need, so all tasks of a lane can start, or none of them. A need is a limiter and an amount,
-- such as `permits:db=3`. These keys belong to the limiters of a queue:
--
--   capacities           the limiters that limit something. A limiter without a capacity limits nothing, and nothing is counted for it
--   in-use               what the active tasks hold. As with the keys (key-limits.lua), `active` is the truth, a start adds to the count,
--                        and the script that removes a task from `active` subtracts from it
--   need-waiters:<need>  the lanes that wait because of this need, by their tickets. A lane's ticket is the pass of the turn in which it
--                        met the limit. The lanes with needs that wait for their concurrency key have the need `key:<key>=1`
--   waited-needs         the needs for which lanes wait
--   key-passes           the pass of each concurrency key that has several lanes, so that they share its turns (turns.lua)
--
-- A task starts when all that it needs is free, and takes it in the same script. A lane whose tasks may not start leaves the turns, like
-- one whose key is at its limit:
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
-- 1. `in-use` agrees with the tasks in `active`, for each limiter with a capacity.
-- 2. A lane with a ticket is blocked, or has been woken and takes turns.
-- 3. The first lane that waits for a limiter has been woken, or some limiter refuses it.
--
-- limiters() returns these functions. It creates them on the first call, because few tasks need a limiter. `name`, `key` and `needs` are
-- those of a lane:
--
-- refusals(name, key, needs, pass)         the needs for which the lane whose turn it is has to wait, or nil if its next task may start;
--                                          and the pass that all lanes have reached, which is that of the lane or, if it is smaller, the
--                                          ticket of a lane that waits for the same. A lane that has to wait gives back its ticket for the
--                                          key. A lane that needs more than a capacity also gives back its tickets for the other limiters,
--                                          and the pass is nil
-- wait_for(name, refused, pass, time)      blocks the lane until it is woken because of one of these needs. `time` is the pass that all
--                                          lanes have reached, or nil
-- leave_waiters(name, key, needs, kept)    gives back the lane's tickets, and wakes the next lanes. `kept` is a limiter, or 'key', for
--                                          which the lane keeps its ticket. Returns whether it has given one back
-- is_full(needs)                           whether some limiter has too little left. Lanes that wait are not considered
-- take(needs)                              counts what a task takes when it starts
-- give_back(needs)                         counts what a task gives back, and wakes the next lanes
-- wake(limiter)                            wakes the first lane that waits for the limiter
-- each_need(needs)                         iterates over the limiters and amounts of needs
--- @include blocked-lanes

local created_limiters

local function limiters()
  if created_limiters then
    return created_limiters
  end

  local function each_need(needs)
    return string.gmatch(needs, '([^,]+)=(%d+)')
  end

  local function capacity_of(limiter)
    return tonumber(redis.call('HGET', base .. 'capacities', limiter))
  end

  local function used_of(limiter)
    return tonumber(redis.call('ZSCORE', base .. 'in-use', limiter)) or 0
  end

  -- Redis orders equal scores by the bytes of the members, and Lua compares texts by the server's locale.
  local function is_before(one, other)
    for i = 1, math.min(#one, #other) do
      local a, b = string.byte(one, i), string.byte(other, i)
      if a ~= b then
        return a < b
      end
    end
    return #one < #other
  end

  -- Returns the first lane that waits for the limiter, and its ticket. Lanes that need more than the capacity are passed over.
  local function first_waiter(limiter)
    local capacity, first, ticket = capacity_of(limiter), nil, nil
    local needs = redis.call('ZRANGEBYLEX', base .. 'waited-needs', '[' .. limiter .. '=', '(' .. limiter .. '>')
    for _, need in ipairs(needs) do
      if not capacity or tonumber(string.match(need, '%d+$')) <= capacity then
        local lane, score = unpack(redis.call('ZRANGE', base .. 'need-waiters:' .. need, 0, 0, 'WITHSCORES'))
        local at = tonumber(score)
        if lane and (not first or at < ticket or at == ticket and is_before(lane, first)) then
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

  local function refusals(name, key, needs, pass)
    local refused, time = nil, pass
    for limiter, amount in each_need(needs) do
      local capacity, need = capacity_of(limiter), limiter .. '=' .. amount
      if capacity and tonumber(amount) > capacity then
        leave_waiters(name, key, needs, limiter)
        return { need }
      end
      local first, ticket
      if capacity then
        first, ticket = first_waiter(limiter)
      end
      local is_behind = first and first ~= name and (ticket < pass or ticket == pass and is_before(first, name))
      if is_behind or capacity and used_of(limiter) + amount > capacity then
        refused = refused or {}
        refused[#refused + 1] = need
        time = first and math.min(time, ticket) or time
      end
    end
    if refused then
      leave_key(name, key)
    end
    return refused, time
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

  local function is_full(needs)
    for limiter, amount in each_need(needs) do
      local capacity = capacity_of(limiter)
      if capacity and used_of(limiter) + amount > capacity then
        return true
      end
    end
    return false
  end

  -- A service has no permits, even if its breaker has just let its last probe start.
  local function take(needs)
    for limiter, amount in each_need(needs) do
      if string.sub(limiter, 1, 8) ~= 'service:' and redis.call('HEXISTS', base .. 'capacities', limiter) == 1 then
        redis.call('ZINCRBY', base .. 'in-use', amount, limiter)
      end
    end
  end

  -- A limiter without a capacity was not counted.
  local function give_back(needs)
    for limiter, amount in each_need(needs) do
      local left = redis.call('ZADD', base .. 'in-use', 'XX', 'INCR', '-' .. amount, limiter)
      if left then
        if tonumber(left) <= 0 then
          redis.call('ZREM', base .. 'in-use', limiter)
        end
        wake(limiter)
      end
    end
  end

  created_limiters = {
    refusals = refusals,
    wait_for = wait_for,
    leave_waiters = leave_waiters,
    is_full = is_full,
    take = take,
    give_back = give_back,
    wake = wake,
    each_need = each_need,
  }
  return created_limiters
end
