-- Derives the limits in force from a queue's settings (internals/turns/key-limits.ts).
--
-- derive_limits()              derives all of them, counts the active tasks, and makes the next fetches examine the lanes that wait for a
--                              limiter or for a time. O(settings + active tasks + blocked lanes)
-- derive_limits_of_keys(keys)  derives the limits of single keys, and lets those of their lanes take turns again that may start a task.
--                              `keys` has the key of each changed field of `key-limits`. Returns false if the queue's first limit was added
--                              or its last one was removed, so that counting begins or ends. The caller then has to call derive_limits.
--                              O(changed keys + definition), and O(lanes that wait for a time) if a rate has changed
--
-- KEY_LIMIT and CAPACITY are the prefixes of the names of the settings.
--- @include active-count

local KEY_LIMIT, CAPACITY = 'keyLimit:', 'capacity:'

local function starts_with(text, start)
  return string.sub(text, 1, #start) == start
end

-- Returns the limits of keys and the capacities in the settings. A command's limit replaces that of the definition.
local function limits_in(settings)
  local limits, capacities, defined = {}, {}, {}
  for i = 1, #settings, 2 do
    local name, value = settings[i], settings[i + 1]
    if name == 'definedKeyLimits' or name == 'definedCapacities' then
      defined[name] = cjson.decode(value)
    elseif starts_with(name, KEY_LIMIT) then
      limits[string.sub(name, #KEY_LIMIT + 1)] = value
    elseif starts_with(name, CAPACITY) then
      capacities[string.sub(name, #CAPACITY + 1)] = value
    end
  end
  for name, value in pairs(defined.definedKeyLimits or {}) do
    limits[name] = limits[name] or value
  end
  for name, value in pairs(defined.definedCapacities or {}) do
    capacities[name] = capacities[name] or value
  end
  return limits, capacities
end

-- Makes the next fetches examine the lanes that wait for a time.
local function hasten_lanes()
  local times = base .. 'lane-times'
  if redis.call('ZUNIONSTORE', times, '1', times, 'WEIGHTS', '0') > 0 then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
end

local function derive_limits()
  local limits, capacities = limits_in(redis.call('HGETALL', base .. 'settings'))
  redis.call('DEL', base .. 'key-limits')
  for name, value in pairs(limits) do
    redis.call('HSET', base .. 'key-limits', name, value)
  end
  if next(limits) == nil then
    redis.call('UNLINK', base .. 'lane-times')
  end
  local has_lanes = redis.call('EXISTS', base .. 'turn-state') == 1
  for _, limiter in ipairs(redis.call('HKEYS', base .. 'capacities')) do
    -- The capacities of services are not settings (gates.lua).
    local is_derived = starts_with(limiter, 'permits:') or starts_with(limiter, 'task:')
    if is_derived and not capacities[limiter] then
      redis.call('HDEL', base .. 'capacities', limiter)
    elseif has_lanes and starts_with(limiter, 'service:') then
      redis.call('ZADD', base .. 'lane-times', '0', '\30' .. limiter)
    end
  end
  for limiter, capacity in pairs(capacities) do
    redis.call('HSET', base .. 'capacities', limiter, capacity)
  end
  count_active(true)
  hasten_lanes()
end

local function derive_limits_of_keys(keys)
  local settings, limits, has_rates = base .. 'settings', base .. 'key-limits', false
  if redis.call('EXISTS', limits) == 0 then
    return false
  end
  local defined = cjson.decode(redis.call('HGET', settings, 'definedKeyLimits') or '{}')
  for field in pairs(keys) do
    local value = redis.call('HGET', settings, KEY_LIMIT .. field) or defined[field]
    if value then
      redis.call('HSET', limits, field, value)
    else
      redis.call('HDEL', limits, field)
    end
    has_rates = has_rates or starts_with(field, 'rate')
  end
  if redis.call('EXISTS', limits) == 0 then
    return false
  end
  for _, key in pairs(keys) do
    local limit = limits_of_key(key)
    if not limit or active_of_key(key) < limit then
      resume_key(key)
    end
  end
  if has_rates then
    hasten_lanes()
  end
  return true
end
