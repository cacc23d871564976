#!lua flags=no-writes
-- Reads a queue's schedules: all of them, or those that are due.
--
-- KEYS  schedules, scheduleTimes
-- ARGV  within  '' to read all schedules; otherwise, only those that are due within this time are read, in ms
--
-- Returns `[now: number, schedules: Array<string | null>]`: the time in ms since 1970, and for each schedule the token of its last write
-- and, after a blank, its record as JSON.
--- @include time

local now = millis()
if within == '' then
  return { now, redis.call('HVALS', schedules) }
end
local names = redis.call('ZRANGEBYSCORE', scheduleTimes, '-inf', whole(now + within), 'LIMIT', 0, 500)
if #names == 0 then
  return { now, {} }
end
return { now, redis.call('HMGET', schedules, unpack(names)) }
