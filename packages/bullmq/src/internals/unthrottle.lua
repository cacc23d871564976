#!lua flags=allow-oom
-- Removes the placeholder rate of a throttle that has ended, because that rate would otherwise cost two commands per job. A throttle that
-- has not ended is not changed.
--
-- KEYS  limiter, meta
-- ARGV  mark  of a throttle
if redis.call('HGET', meta, 'max') == mark and redis.call('GET', limiter) ~= mark then
  redis.call('HDEL', meta, 'max', 'duration')
end
