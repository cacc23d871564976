#!lua flags=allow-oom
-- Records that a consumer has read a cancel rule.
--
-- KEYS[1]  known     the consumers that know the rule
-- ARGV[1]  consumer  this consumer
-- ARGV[2]  keepMs    how long to keep the set
local known = KEYS[1]
local consumer, keepMs = ARGV[1], ARGV[2]

redis.call('SADD', known, consumer)
redis.call('PEXPIRE', known, keepMs)
