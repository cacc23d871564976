#!lua flags=allow-oom
-- Applies a command to its queue's settings. An older command never overwrites a newer one, whichever is applied first. Pause and resume
-- have the same effect as BullMQ's own. A change that may let tasks start adds the marker, because workers that got no task before are
-- waiting for the marker.
--
-- KEYS[1]  settings
-- KEYS[2]  meta
-- KEYS[3]  marker
-- KEYS[4]  wait
-- KEYS[5]  prioritized
-- KEYS[6]  lanes
-- KEYS[7]  delayed
-- KEYS[8]  events
-- KEYS[9]  limiter
-- ARGV[1]  base       the prefix of the queue's keys
-- ARGV[2]  sequence   the command's sequence number
-- ARGV[3]  mark       what `limiter` contains while a handler throttles the queue
-- ARGV[4]  scoreStep  BullMQ's factor between a due time and a score in `delayed`
-- ARGV...  the names and values of the settings, where '' removes a setting
local settings, meta, marker, wait, prioritized = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local lanes, delayed, events, limiter = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local base, sequence, mark, scoreStep = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include gates
--- @include derive-limits

local function is_newest(name)
  if tonumber(redis.call('HGET', settings, 'sequence:' .. name) or '0') >= tonumber(sequence) then
    return false
  end
  redis.call('HSET', settings, 'sequence:' .. name, sequence)
  return true
end

local function store(hash, name, value)
  if value == '' then
    redis.call('HDEL', hash, name)
  else
    redis.call('HSET', hash, name, value)
  end
end

local lifted = false
local set = {}

function set.paused(value)
  if value ~= '' then
    redis.call('HSET', meta, 'paused', 1)
    redis.call('DEL', marker)
    redis.call('XADD', events, '*', 'event', 'paused')
    return
  end
  lifted = true
  if redis.call('HDEL', meta, 'paused') == 1 then
    redis.call('XADD', events, '*', 'event', 'resumed')
  end
end

function set.concurrency(value)
  lifted = true
  store(meta, 'concurrency', value)
end

function set.rate(value)
  lifted = true
  if value ~= '' then
    local max, duration = string.match(value, '^(%d+)/(%d+)$')
    redis.call('HSET', meta, 'max', max, 'duration', duration)
  elseif redis.call('GET', limiter) == mark then
    redis.call('HSET', meta, 'max', mark, 'duration', 1)
  else
    redis.call('HDEL', meta, 'max', 'duration')
  end
end

local fields_of_keys, sets_others = {}, false
for i = 5, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if is_newest(name) then
    local service = string.match(name, '^breaker:(.*)$')
    if service then
      local given = cjson.decode(value)
      gates().set(service, given.mode, given.by, given.settings)
    elseif set[name] then
      set[name](value)
    else
      store(settings, name, value)
    end
    local field = string.match(name, '^keyLimit:(.*)$')
    local key = field and string.match(field, '^%a+:(.*)$')
    if key then
      fields_of_keys[field] = key
    end
    sets_others = sets_others or field and not key or string.find(name, '^capacity:') ~= nil
  end
end
if sets_others or next(fields_of_keys) then
  if sets_others or not derive_limits_of_keys(fields_of_keys) then
    derive_limits()
  end
end
if lifted and redis.call('HEXISTS', meta, 'paused') == 0 then
  if redis.call('LLEN', wait) + redis.call('EXISTS', prioritized, lanes) > 0 then
    redis.call('ZADD', marker, 0, '0')
  else
    local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
    if due[2] then
      redis.call('ZADD', marker, tonumber(due[2]) / tonumber(scoreStep), '1')
    end
  end
end
