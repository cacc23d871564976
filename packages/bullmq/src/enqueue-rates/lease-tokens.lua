#!lua flags=allow-oom
-- Gives an API process some of an API key's tokens. Grants the tokens that are needed now, or as many as there are. If there are fewer than
-- the process needs at least, grants none. Of the tokens that are then left, grants those that would be used soon, but at most half, so
-- that other processes get some, too. Once the bucket would be full again, Redis deletes it.
--
-- KEYS  bucket  the API key's tokens
-- ARGV  max     the rate's number of tokens
-- ARGV  per     its period, in ms
-- ARGV  needed  how many tokens the process needs now
-- ARGV  least   how many it needs at least
-- ARGV  ahead   how many it would use soon
--
-- Returns `[granted: number, left: string]`: the tokens that were granted, and how many are left in the bucket, including a fraction.
--- @include time
--- @include token-bucket

local now = micros() / 1000
local tokens = tokens_in(redis.call('GET', bucket), now, tonumber(max), tonumber(per))
local available, granted = whole_tokens(tokens), 0
if available >= tonumber(least) then
  granted = math.min(tonumber(needed), available)
  granted = granted + math.min(tonumber(ahead), math.floor((available - granted) / 2))
  redis.call('SET', bucket, stored_bucket(tokens - granted, now), 'PX', per)
end
return { granted, string.format('%.9f', tokens - granted) }
