#!lua flags=allow-oom
-- Throttles the concurrency key of a task, or extends its current throttle. O(log n).
--
-- KEYS  job
-- ARGV  base
-- ARGV  duration  in ms
--
-- Returns `0 | 1`: 0 if the task has no concurrency key in a fair queue, and nothing was written.
--- @include lane
--- @include time

local lane = redis.call('HGET', job, 'lane')
local key = lane and split_lane(lane_name(lane))
if not key or key == '' then
  return 0
end
-- The clock is rounded down to whole milliseconds, so one is added.
local throttles, now = base .. 'key-throttles', millis()
redis.call('ZREMRANGEBYSCORE', throttles, '-inf', whole(now))
redis.call('ZADD', throttles, 'GT', whole(now + duration + 1), key)
redis.call('PEXPIREAT', throttles, redis.call('ZRANGE', throttles, -1, -1, 'WITHSCORES')[2])
return 1
