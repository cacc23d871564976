#!lua flags=allow-oom
-- Stores which troubles of a schedule the leader has reported. Does nothing if a newer leader has worked on the queue.
--
-- KEYS  leader, scheduleTroubles
-- ARGV  fencing
-- ARGV  name      the schedule
-- ARGV  troubles  its troubles as JSON, or ''
--- @include fence

if is_deposed(leader, fencing) then
  return
end
if troubles == '' then
  redis.call('HDEL', scheduleTroubles, name)
else
  redis.call('HSET', scheduleTroubles, name, troubles)
end
