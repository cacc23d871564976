#!lua flags=allow-oom
-- Stores the circuit breakers that the catalogue of a worker contains.
--
-- KEYS  stored    the breakers
-- ARGV  base
-- ARGV  replaces  '1' to replace stored settings and to delete all breakers that are not given, '' to store only missing ones
-- ARGV[3...]  the services, each followed by its settings (stored-breaker.ts)
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
