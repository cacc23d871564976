#!lua flags=allow-oom
-- Releases the leader's lease, and announces that the namespace has no leader. Does nothing if another process holds it.
--
-- KEYS  lease
-- ARGV  holder   the caller
-- ARGV  channel  the leader's channel
if redis.call('GET', lease) ~= holder then
  return
end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
