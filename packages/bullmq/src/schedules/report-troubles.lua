#!lua flags=allow-oom
-- Stores which troubles of a schedule the leader has reported. Does nothing if a newer leader has worked on the queue.
--
-- KEYS[1]  leader            the queue's fencing number
-- KEYS[2]  scheduleTroubles  the reported troubles by schedule
-- ARGV[1]  fencing           the leader's number
-- ARGV[2]  name              the schedule
-- ARGV[3]  troubles          its troubles as JSON, or ''
local leader, scheduleTroubles = KEYS[1], KEYS[2]
local fencing, name, troubles = ARGV[1], ARGV[2], ARGV[3]
--- @include fence

if is_deposed(leader, fencing) then
  return
end
if troubles == '' then
  redis.call('HDEL', scheduleTroubles, name)
else
  redis.call('HSET', scheduleTroubles, name, troubles)
end
