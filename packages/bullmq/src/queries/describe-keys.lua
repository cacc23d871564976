#!lua flags=no-writes
-- Reads for each of the given concurrency keys how many of its tasks wait and are active, its limits, and why it may start no task at the
-- moment. If the queue does not limit its keys, their active tasks are not counted. Takes two commands for each key, and up to ten more if
-- there are limits and throttles.
--
-- KEYS  lanes, settings
-- ARGV  base
-- ARGV[2...]  the concurrency keys
--
-- Returns `[now: string, waitingKeys: number, waitingTasks: string, keys: StoredKey[]]`: the time in ms since 1970, by Redis's clock,
-- and each of the given keys.
--- @type StoredKey from ./concurrency-keys.ts
--- @include time
--- @include lane-tasks
--- @include queue-features
--- @include key-limits

local KEY_LIMIT = 'keyLimit:'
local obstacles = read_obstacles(read_features())

-- Returns a limit, whether it applies to this key alone, and what has set it.
local function describe_limit(name, key, is_own, value)
  if not value then
    return {}
  end
  local field = is_own and name .. ':' .. key or name
  local is_commanded = redis.call('HEXISTS', settings, KEY_LIMIT .. field) == 1
  return { tostring(value), is_own and 1 or 0, is_commanded and 'command' or 'definition' }
end

local function describe(key)
  local active, limit, stored, own, own_rate = 0, nil, nil, nil, nil
  if obstacles.has_limits then
    active = active_of_key(key)
    limit, stored, own, own_rate = limits_of_key(key)
  end
  local rate = stored and open_rate(key, stored) or nil
  local blocks = {}
  if limit and active >= limit then
    table.insert(blocks, 'concurrency')
  end
  if key_starts_at(key, rate, false) then
    table.insert(blocks, 'rate')
  end
  if key_starts_at(key, nil, obstacles.has_throttles) then
    table.insert(blocks, 'throttle')
  end
  local starts_at = key_starts_at(key, rate, obstacles.has_throttles)
  return {
    lane_length(base, key),
    active,
    describe_limit('concurrency', key, own, limit),
    describe_limit('rate', key, own_rate, stored),
    blocks,
    starts_at and whole(starts_at) or '',
  }
end

local described = {}
for i = 2, #ARGV do
  described[i - 1] = describe(ARGV[i])
end
return {
  whole(millis()),
  redis.call('ZCARD', lanes),
  redis.call('HGET', base .. 'turn-state', 'waiting') or '0',
  described,
}
