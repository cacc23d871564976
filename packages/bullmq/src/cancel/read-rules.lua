#!lua flags=allow-oom
-- Reads the cancel rules for a consumer, and records that the consumer has read them.
--
-- KEYS[1]  cancelConsumers  the consumers, by when they last read the rules
-- KEYS[2]  cancelRules      the rules
-- ARGV[1]  consumer         this consumer
-- ARGV[2]  silence          after how long a consumer is forgotten, in ms
--
-- Returns `string[]`: the rules as JSON.
local cancelConsumers, cancelRules = KEYS[1], KEYS[2]
local consumer, silence = ARGV[1], ARGV[2]
--- @include time

local now = millis()
redis.call('ZADD', cancelConsumers, now, consumer)
redis.call('ZREMRANGEBYSCORE', cancelConsumers, '-inf', now - silence)
redis.call('PEXPIRE', cancelConsumers, silence)
return redis.call('HVALS', cancelRules)
