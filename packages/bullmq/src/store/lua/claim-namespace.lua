#!lua
-- Stores the current schema version, unless the namespace already has a version or holds data of 0.1.0.
--
-- KEYS  schema
-- KEYS  legacyFleet     a key that only 0.1.0 wrote
-- ARGV  version         the current version
-- ARGV  hasLegacyQueue  '1' if 0.1.0 wrote one of the queues
--
-- Returns `string`: the version of the namespace.
local stored = redis.call('GET', schema)
if stored then
  return stored
end
if hasLegacyQueue == '1' or redis.call('EXISTS', legacyFleet) == 1 then
  return '1'
end
redis.call('SET', schema, version)
return version
