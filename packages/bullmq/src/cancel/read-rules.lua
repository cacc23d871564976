#!lua flags=allow-oom
-- Reads the cancel rules for a consumer, and records that the consumer has read them.
--
-- KEYS  cancelConsumers, cancelRules
-- ARGV  consumer  this consumer
-- ARGV  silence   after how long a consumer is forgotten, in ms
--
-- Returns `string[]`: the rules as JSON.
--- @include time

local now = millis()
redis.call('ZADD', cancelConsumers, now, consumer)
redis.call('ZREMRANGEBYSCORE', cancelConsumers, '-inf', now - silence)
redis.call('PEXPIRE', cancelConsumers, silence)
return redis.call('HVALS', cancelRules)
