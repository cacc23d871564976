-- Finds out which waiting tasks could start now, without starting any.
--
-- limits_at(base, now, mark)    returns what the other functions need: whether no task of the queue may start, and the blocked lanes whose
--                               time has come
-- next_startable(base, limits)  returns the id of the waiting task that starts next, or nil if no waiting task could start
-- count_blocked(base, limits)   returns the number of waiting tasks that no worker could start now, however many slots are free. It is
--                               exact if at most 100 lanes take turns. Otherwise, it is the number of tasks in the first 100 blocked lanes,
--                               and never too high
--
-- `base` is the prefix of the queue's keys, `now` is in ms since 1970, and `mark` is what `limiter` contains while the queue is throttled.
--
-- A waiting task is blocked if its lane is (blocked-lanes.lua), or if no task of the queue may start: because of a limit
-- that a command has set, or because a handler has thrown `rateLimited`. A pause and a drain block nothing in this sense. Nothing is stored
-- for the count, so an enqueue, a fetch and an end cost nothing more.
--
-- Whether a lane is blocked is decided when its turn comes. A lane that takes turns therefore counts as one that may start a task, until a
-- worker with a free slot finds out. And a lane whose time has come counts as one that may start a task, although only the next fetch lets
-- it take turns again: if no worker fetches, its tasks wait for the workers and not for their limit.
--
-- The time does not depend on the number of tasks or lanes. A queue without blocked lanes takes about 10 commands. In the worst case, there
-- are two for each of the 100 lanes that are counted, and three for each blocked lane whose time has come: at most 100 lanes, but as many
-- for each service whose breaker has just closed.
--- @include lane-tasks
--- @include next-task

local COUNTED_LANES = 100

local function tasks_in(base, lanes)
  local count = 0
  for _, lane in ipairs(lanes) do
    count = count + lane_length(base, lane)
  end
  return count
end

-- Returns whether no task of the queue may start. BullMQ's scripts compare the same values.
local function is_limited(base, mark)
  local concurrency, max = unpack(redis.call('HMGET', base .. 'meta', 'concurrency', 'max'))
  if concurrency and redis.call('LLEN', base .. 'active') >= tonumber(concurrency) then
    return true
  end
  local used = redis.call('GET', base .. 'limiter')
  -- A worker with a rate of its own applies a throttle, although the queue has no rate.
  return used and tonumber(used) >= tonumber(max or mark) and redis.call('PTTL', base .. 'limiter') > 0
end

-- Adds the blocked lanes whose time has come, as a set, the first one that has a task, and how many of their tasks may start. If it is time
-- to probe a service, that is one task.
local function add_due_lanes(base, now, limits)
  local due = limits.due
  local function add(lane, most)
    if due[lane] or not redis.call('ZSCORE', base .. 'blocked-lanes', lane) then
      return
    end
    local tasks = math.min(lane_length(base, lane), most)
    due[lane] = true
    limits.due_tasks = limits.due_tasks + tasks
    if tasks > 0 then
      limits.first_due = limits.first_due or lane
    end
  end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', base .. 'lane-times', '-inf', now, 'LIMIT', 0, COUNTED_LANES)) do
    local service = string.match(name, '^\30(service:[^=]*)$')
    if not service then
      add(name, math.huge)
    else
      local is_closed = redis.call('HEXISTS', base .. 'capacities', service) == 0
      local last = is_closed and COUNTED_LANES - 1 or 0
      for _, lane in ipairs(redis.call('ZRANGE', base .. 'need-waiters:' .. service .. '=1', 0, last)) do
        add(lane, is_closed and math.huge or 1)
      end
    end
  end
end

local function limits_at(base, now, mark)
  local has_blocked_lanes = redis.call('EXISTS', base .. 'blocked-lanes') == 1
  local limits = { holds_all = is_limited(base, mark), has_blocked_lanes = has_blocked_lanes, due = {}, due_tasks = 0 }
  if has_blocked_lanes and not limits.holds_all then
    add_due_lanes(base, now, limits)
  end
  return limits
end

local function next_startable(base, limits)
  if limits.holds_all then
    return nil
  end
  return next_task(base) or limits.first_due and lane_head(base, limits.first_due)
end

local function count_blocked(base, limits)
  local in_lanes = tonumber(redis.call('HGET', base .. 'turn-state', 'waiting')) or 0
  -- The parents of a team's own flows.
  local count = redis.call('ZCARD', base .. 'waiting-children')
  if limits.holds_all then
    return count + in_lanes + redis.call('LLEN', base .. 'wait') + redis.call('ZCARD', base .. 'prioritized')
  end
  if in_lanes == 0 or not limits.has_blocked_lanes then
    return count
  end
  local blocked
  if redis.call('ZCARD', base .. 'turns') <= COUNTED_LANES then
    blocked = in_lanes - tasks_in(base, redis.call('ZRANGE', base .. 'turns', 0, -1))
  else
    blocked = tasks_in(base, redis.call('ZRANGE', base .. 'blocked-lanes', 0, COUNTED_LANES - 1))
  end
  return count + math.max(0, blocked - limits.due_tasks)
end
