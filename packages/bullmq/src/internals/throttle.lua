#!lua flags=allow-oom
-- Throttles a queue, or extends the current throttle. BullMQ reads the counter only if the queue has a rate, so a queue without one is
-- given a maximum that is never reached.
--
-- KEYS  limiter, meta
-- ARGV  duration    in ms
-- ARGV  mark        of a throttle
-- ARGV  hasOwnRate  '1' if the worker has a rate limit of its own
local left = redis.call('GET', limiter) == mark and redis.call('PTTL', limiter) or 0
if left < tonumber(duration) then
  redis.call('SET', limiter, mark, 'PX', duration)
end
if hasOwnRate ~= '1' and redis.call('HEXISTS', meta, 'max') == 0 then
  redis.call('HSET', meta, 'max', mark, 'duration', 1)
end
