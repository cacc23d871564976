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
-- such as `permits:db=3`. A task starts when all that it needs is free, and takes it in the same script. A lane whose tasks may not start
-- leaves the turns, and waits for a limiter (tickets.lua). These keys belong to the limiters of a queue, besides those of the tickets:
--
--   capacities  the limiters that limit something. A limiter without a capacity limits nothing, and nothing is counted for it
--   in-use      what the active tasks hold. As with the keys (key-limits.lua), `active` is the truth, a start adds to the count, and the
--               script that removes a task from `active` subtracts from it. After each script, it agrees with the tasks in `active`, for
--               each limiter with a capacity
--
-- limiters() returns these functions. It creates them on the first call, because few tasks need a limiter. `name`, `key` and `needs` are
-- those of a lane:
--
-- refusals(name, key, needs, pass)  the needs for which the lane whose turn it is has to wait, or nil if its next task may start; and the
--                                   pass that all lanes have reached, which is that of the lane or, if it is smaller, the ticket of a lane
--                                   that waits for the same. A lane that has to wait gives back its ticket for the key. A lane that needs
--                                   more than a capacity also gives back its tickets for the other limiters, and the pass is nil
-- is_full(needs)                    whether some limiter has too little left. Lanes that wait are not considered
-- take(needs)                       counts what a task takes when it starts
-- give_back(needs)                  counts what a task gives back, and wakes the next lanes
-- each_need(needs)                  iterates over the limiters and amounts of needs
-- wait_for, leave_waiters, wake     see tickets.lua
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

  --- @include tickets

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
      local is_behind = first and first ~= name and (ticket < pass or ticket == pass and is_after(name, first))
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
