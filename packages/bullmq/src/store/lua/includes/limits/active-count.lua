-- count_active(has_changed) counts how many tasks of each concurrency key are active, and what the active tasks hold of each limiter, and
-- corrects the stored counts. It also examines blocked lanes, and lets those take turns again that have nothing to wait for. Returns how
-- many counts and lanes were wrong. If a limit has changed (`has_changed`), it examines every blocked lane, and wakes the first lane that
-- waits for each limiter. Otherwise, it examines the lanes of the keys whose counts were wrong, and other lanes at random. If the queue
-- limits nothing, it removes all counts. O(active tasks + counted keys + examined lanes). `base` is the prefix of the queue's keys.
--- @include lane
--- @include held-places
--- @include ticket-of

-- How many blocked lanes one count examines at random if no limit has changed, so that 100,000 of them do not delay other scripts.
local EXAMINED_BLOCKED_LANES = 1000

-- Returns the capacities of all limiters but services, which have no permits.
local function counted_capacities()
  local capacities, stored = {}, redis.call('HGETALL', base .. 'capacities')
  for i = 1, #stored, 2 do
    if string.sub(stored[i], 1, 8) ~= 'service:' then
      capacities[stored[i]] = tonumber(stored[i + 1])
    end
  end
  return capacities
end

-- Returns how many active tasks each key has, and what they hold of each limiter.
local function count_held(has_limits)
  local counts, used, capacities = {}, {}, counted_capacities()
  local is_counted = has_limits or next(capacities)
  for _, id in ipairs(is_counted and redis.call('LRANGE', base .. 'active', 0, -1) or {}) do
    local lane = redis.call('HGET', base .. id, 'lane')
    local key, needs = split_lane(lane and lane_name(lane) or '')
    if has_limits and key ~= '' then
      counts[key] = (counts[key] or 0) + 1
    end
    for limiter, amount in limiters().each_need(needs or '') do
      if capacities[limiter] then
        used[limiter] = (used[limiter] or 0) + amount
      end
    end
  end
  return counts, used
end

-- Makes a sorted set agree with what was counted. Calls `corrected` with each stored member whose count was wrong, and returns how many
-- counts were wrong or missing.
local function correct_counts(set, counted, corrected)
  local stored, seen, wrong = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES'), {}, 0
  for i = 1, #stored, 2 do
    local member = stored[i]
    seen[member] = true
    if counted[member] ~= tonumber(stored[i + 1]) then
      wrong = wrong + 1
      if counted[member] then
        redis.call('ZADD', set, counted[member], member)
      else
        redis.call('ZREM', set, member)
      end
      corrected(member)
    end
  end
  for member, count in pairs(counted) do
    if not seen[member] then
      wrong = wrong + 1
      redis.call('ZADD', set, count, member)
    end
  end
  return wrong
end

-- Returns whether a blocked lane still has something to wait for. Of the lanes that wait for the same key, only the first is woken: each
-- lane wakes the next one when it gives its ticket back.
local function is_refused(name, counts)
  local key, needs = split_lane(name)
  local ticket = needs and ticket_of(base, name, key, needs)
  if ticket and ticket ~= 'key' or redis.call('ZSCORE', base .. 'lane-times', name) then
    return true
  end
  local first = ticket and redis.call('ZRANGE', base .. 'need-waiters:' .. key_need(key), 0, 0)[1]
  if first and first ~= name then
    local is_awake = redis.call('ZSCORE', base .. 'blocked-lanes', first)
      or redis.call('ZSCORE', base .. 'turns', first)
    if is_awake then
      return true
    end
  end
  local limit = (ticket or not needs) and limits_of_key(key)
  return limit and (counts[key] or 0) >= limit
end

-- Wakes the first lane of each limiter for which lanes wait. Those that wait for their concurrency key are not woken.
local function wake_all()
  local is_woken = {}
  for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
    local limiter = string.match(need, '^(.*)=%d+$')
    if not is_woken[limiter] and string.sub(limiter, 1, 4) ~= 'key:' then
      limiters().wake(limiter)
    end
    is_woken[limiter] = true
  end
end

local function count_active(has_changed)
  local counts, used = count_held(redis.call('EXISTS', base .. 'key-limits') == 1)
  local blocked, wrong = base .. 'blocked-lanes', 0
  local function examine(name, pass)
    if pass and not is_refused(name, counts) then
      wrong = wrong + 1
      resume_lane(name, pass)
    end
  end
  local wrong_keys = correct_counts(base .. 'active-by-key', counts, function(key)
    examine(key, redis.call('ZSCORE', blocked, key))
    wake_first(key_need(key))
  end)
  local wrong_limiters = correct_counts(base .. 'in-use', used, limiters().wake)
  local lanes = has_changed and redis.call('ZRANGE', blocked, 0, -1, 'WITHSCORES')
    or redis.call('ZRANDMEMBER', blocked, EXAMINED_BLOCKED_LANES, 'WITHSCORES')
  for i = 1, #lanes, 2 do
    examine(lanes[i], lanes[i + 1])
  end
  if has_changed then
    wake_all()
  end
  return wrong + wrong_keys + wrong_limiters
end
