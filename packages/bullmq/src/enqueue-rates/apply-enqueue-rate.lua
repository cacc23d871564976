#!lua flags=allow-oom
-- Applies a command to an API key's enqueue rate. An older command never overwrites a newer one.
--
-- KEYS[1]  enqueueRates  the rates that commands have set, by the API key's name
-- ARGV[1]  apiKeyName
-- ARGV[2]  sequence      the command's position in the order of all commands
-- ARGV[3]  rate          the rate, or '' if the API's own limit applies again
local enqueueRates = KEYS[1]
local apiKeyName, sequence, rate = ARGV[1], ARGV[2], ARGV[3]

local newest = string.match(redis.call('HGET', enqueueRates, apiKeyName) or '0', '^%d+')
if tonumber(newest) < tonumber(sequence) then
  redis.call('HSET', enqueueRates, apiKeyName, sequence .. ' ' .. rate)
end
