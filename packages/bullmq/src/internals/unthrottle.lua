#!lua flags=allow-oom
-- Removes the placeholder rate of a throttle that has ended, because that rate would otherwise cost two commands per job. A throttle that
-- has not ended is not changed.
--
-- KEYS[1]  limiter  BullMQ's counter of starts
-- KEYS[2]  meta     BullMQ's settings of the queue
-- ARGV[1]  mark     of a throttle
local limiter, meta = KEYS[1], KEYS[2]
local mark = ARGV[1]

if redis.call('HGET', meta, 'max') == mark and redis.call('GET', limiter) ~= mark then
  redis.call('HDEL', meta, 'max', 'duration')
end
