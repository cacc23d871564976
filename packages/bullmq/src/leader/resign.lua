#!lua flags=allow-oom
-- Releases the leader's lease, and announces that the namespace has no leader. Does nothing if another process holds it.
--
-- KEYS[1]  lease    the leader's lease
-- ARGV[1]  holder   the caller
-- ARGV[2]  channel  the leader's channel
local lease = KEYS[1]
local holder, channel = ARGV[1], ARGV[2]

if redis.call('GET', lease) ~= holder then
  return
end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
