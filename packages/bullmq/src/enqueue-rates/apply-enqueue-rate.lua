#!lua flags=allow-oom
-- Applies a command to an API key's enqueue rate. An older command never overwrites a newer one.
--
-- KEYS  enqueueRates
-- ARGV  apiKeyName
-- ARGV  sequence  the command's position in the order of all commands
-- ARGV  rate      the rate, or '' if the API's own limit applies again
local newest = string.match(redis.call('HGET', enqueueRates, apiKeyName) or '0', '^%d+')
if tonumber(newest) < tonumber(sequence) then
  redis.call('HSET', enqueueRates, apiKeyName, sequence .. ' ' .. rate)
end
