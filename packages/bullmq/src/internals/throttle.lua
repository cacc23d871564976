#!lua flags=allow-oom
-- Throttles a queue, or extends the current throttle. BullMQ reads the counter only if the queue has a rate, so a queue without one is
-- given a maximum that is never reached.
--
-- KEYS[1]  limiter     BullMQ's counter of starts
-- KEYS[2]  meta        BullMQ's settings of the queue
-- ARGV[1]  duration    in ms
-- ARGV[2]  mark        of a throttle
-- ARGV[3]  hasOwnRate  '1' if the worker has a rate limit of its own
local limiter, meta = KEYS[1], KEYS[2]
local duration, mark, hasOwnRate = ARGV[1], ARGV[2], ARGV[3]

local left = redis.call('GET', limiter) == mark and redis.call('PTTL', limiter) or 0
if left < tonumber(duration) then
  redis.call('SET', limiter, mark, 'PX', duration)
end
if hasOwnRate ~= '1' and redis.call('HEXISTS', meta, 'max') == 0 then
  redis.call('HSET', meta, 'max', mark, 'duration', 1)
end
