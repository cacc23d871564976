#!lua flags=allow-oom
-- Stores the limits that the catalogue of a worker contains: those of concurrency keys, and the capacities of limiters.
--
-- KEYS  settings
-- ARGV  base
-- ARGV  keyLimits   the limits of keys as JSON (key-limits.ts)
-- ARGV  capacities  the capacities of limiters as JSON
-- ARGV  replaces    '1' to replace stored limits, '' to store only missing ones
--
-- If a catalogue no longer contains limits, an empty object is stored, so that an older worker does not store its own limits again.
--- @include derive-limits

local function define(name, defined)
  local stored = redis.call('HGET', settings, name)
  if stored == defined or not stored and defined == '{}' or stored and replaces == '' then
    return false
  end
  redis.call('HSET', settings, name, defined)
  return true
end

local has_new_limits = define('definedKeyLimits', keyLimits)
local has_new_capacities = define('definedCapacities', capacities)
if has_new_limits or has_new_capacities then
  derive_limits()
end
