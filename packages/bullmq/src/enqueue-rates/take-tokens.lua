#!lua flags=allow-oom
-- Takes tokens of an API key in a queue, either all of them or none, or gives tokens back. The script that adds a task takes its token from
-- the same bucket (store/lua/includes/add/queue-limits.lua).
--
-- KEYS  apiKeyRates
-- ARGV  apiKeyName
-- ARGV  max, per  the rate's number of tokens, and its period in ms
-- ARGV  wanted    how many tokens to take, at most `max`. A negative number gives tokens back, up to the full bucket
--
-- Returns `number`: 0 if the tokens were taken, or in how many ms there are enough.
--- @include time
--- @include token-bucket

local now = micros() / 1000
local tokens = tokens_in(redis.call('HGET', apiKeyRates, apiKeyName), now, tonumber(max), tonumber(per))
if whole_tokens(tokens) < tonumber(wanted) then
  return math.ceil((wanted - tokens) * per / max)
end
redis.call('HSET', apiKeyRates, apiKeyName, stored_bucket(math.min(max, tokens - wanted), now))
return 0
