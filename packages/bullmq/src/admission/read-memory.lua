#!lua flags=allow-oom
-- Reads how much memory Redis uses, records that this producer is alive, and counts the producers that share what is left. In a cluster,
-- the reply describes the node that holds the key.
--
-- KEYS  producers
-- ARGV  producer  the caller's id
-- ARGV  silence   after how long without a call a producer no longer counts, in ms
--
-- Returns `[info: string, producers: number, isNew: 0 | 1]`: the output of `INFO memory`, or '' if the Redis user is not permitted to run
-- INFO; the number of producers, including this one; whether this one had not called within `silence`.
--- @include time

local now = millis()
redis.call('ZREMRANGEBYSCORE', producers, '-inf', whole(now - silence))
local is_new = redis.call('ZADD', producers, whole(now), producer)
redis.call('PEXPIRE', producers, silence)
local info = redis.pcall('INFO', 'memory')
return { type(info) == 'string' and info or '', redis.call('ZCARD', producers), is_new }
