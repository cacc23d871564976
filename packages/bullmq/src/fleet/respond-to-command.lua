#!lua flags=allow-oom
-- Stores a worker's response to a command. Only a worker's first response is stored.
--
-- KEYS[1]  command  the command
-- KEYS[2]  inbox    the commands that the worker has not responded to
-- ARGV[1]  channel  the channel of responses
-- ARGV[2]  id       the command's id
-- ARGV[3]  worker
-- ARGV[4]  outcome  the outcome and its detail, as a JSON object without the closing brace
local command, inbox = KEYS[1], KEYS[2]
local channel, id, worker, outcome = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--- @include time

redis.call('ZREM', inbox, id)
if redis.call('HGET', command, 'response:' .. worker) ~= 'pending' then
  return
end
redis.call('HSET', command, 'response:' .. worker, outcome .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', channel, id)
