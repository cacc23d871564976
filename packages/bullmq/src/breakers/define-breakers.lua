#!lua flags=allow-oom
-- Stores the circuit breakers that the catalogue of a worker contains.
--
-- KEYS[1]  stored    the breakers
-- ARGV[1]  base      the prefix of the queue's keys
-- ARGV[2]  replaces  '1' to replace stored settings and to delete all breakers that are not given, '' to store only missing ones
-- ARGV...  the services, each followed by its settings (stored-breaker.ts)
local stored = KEYS[1]
local base, replaces = ARGV[1], ARGV[2]
--- @include gates

local defined = {}
for i = 3, #ARGV, 2 do
  defined[ARGV[i]] = true
  if replaces == '1' or redis.call('HEXISTS', stored, ARGV[i]) == 0 then
    gates().define(ARGV[i], ARGV[i + 1])
  end
end
if replaces == '1' then
  for _, service in ipairs(redis.call('HKEYS', stored)) do
    if not defined[service] then
      gates().remove(service)
    end
  end
end
