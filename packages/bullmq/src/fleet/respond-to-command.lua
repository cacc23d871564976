#!lua flags=allow-oom
-- Stores a worker's response to a command. Only a worker's first response is stored.
--
-- KEYS  command, inbox
-- ARGV  channel  the channel of responses
-- ARGV  id, worker
-- ARGV  outcome  the outcome and its detail, as a JSON object without the closing brace
--- @include time

redis.call('ZREM', inbox, id)
if redis.call('HGET', command, 'response:' .. worker) ~= 'pending' then
  return
end
redis.call('HSET', command, 'response:' .. worker, outcome .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', channel, id)
