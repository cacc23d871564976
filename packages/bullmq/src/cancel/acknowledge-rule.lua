#!lua flags=allow-oom
-- Records that a consumer has read a cancel rule.
--
-- KEYS  known     the consumers that know the rule
-- ARGV  consumer  this consumer
-- ARGV  keepMs    how long to keep the set
redis.call('SADD', known, consumer)
redis.call('PEXPIRE', known, keepMs)
