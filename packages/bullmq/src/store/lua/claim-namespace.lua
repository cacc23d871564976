#!lua
-- Stores the current schema version, unless the namespace already has a version or holds data of 0.1.0.
--
-- KEYS[1]  schema          the namespace's schema version
-- KEYS[2]  legacyFleet     a key that only 0.1.0 wrote
-- ARGV[1]  version         the current version
-- ARGV[2]  hasLegacyQueue  '1' if 0.1.0 wrote one of the queues
--
-- Returns `string`: the version of the namespace.
local schema, legacyFleet = KEYS[1], KEYS[2]
local version, hasLegacyQueue = ARGV[1], ARGV[2]

local stored = redis.call('GET', schema)
if stored then
  return stored
end
if hasLegacyQueue == '1' or redis.call('EXISTS', legacyFleet) == 1 then
  return '1'
end
redis.call('SET', schema, version)
return version
