#!lua flags=allow-oom
-- Applies a command to its queue's settings. An older command never overwrites a newer one, whichever is applied first. Pause and resume
-- have the same effect as BullMQ's own. A change that may let tasks start adds the marker, because workers that got no task before are
-- waiting for the marker.
--
-- KEYS  settings, meta, limiter
-- ARGV  base
-- ARGV  sequence  the command's sequence number
-- ARGV  mark      what `limiter` contains while a handler throttles the queue
-- ARGV[4...]  the names and values of the settings, where '' removes a setting
--- @include pausing
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
    pause_queue()
    return
  end
  lifted = true
  -- All in one run, which has to apply the command as a whole. Only a queue to which an older BullMQ still adds has such jobs.
  while take_back_jobs() do
  end
  resume_queue()
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
for i = 4, #ARGV, 2 do
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
  wake_workers()
end
