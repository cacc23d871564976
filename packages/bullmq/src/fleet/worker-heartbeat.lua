#!lua flags=allow-oom
-- Stores a worker's status, and returns the commands that are addressed to the worker. Also forgets up to twenty silent workers.
--
-- KEYS  heartbeats, worker, inbox, unapplied, settingsRevision, logLevel, served
-- ARGV  base
-- ARGV  id        the worker's id
-- ARGV  status    its encoded status
-- ARGV  slots     its encoded slots
-- ARGV  silence   after how long without a heartbeat a worker is forgotten, in ms
-- ARGV  limit     how many commands are returned
-- ARGV  servedMs  for how long it is known when a queue was last served
-- ARGV[8...]  the queues that the worker serves
--
-- Returns `[commands: string[], unapplied: string[], revision: string, logLevel: string]`: the oldest commands, each as its id, spec,
-- sender and time; up to ten unapplied commands; the revision and the log level, or ''.
--- @include forget-worker

local now = millis()
redis.call('HSET', worker, 'status', status, 'slots', slots)
redis.call('PEXPIRE', worker, silence)
redis.call('ZADD', heartbeats, whole(now), id)
for i = 8, #ARGV do
  redis.call('ZADD', served, whole(now), ARGV[i])
end
redis.call('ZREMRANGEBYSCORE', served, '-inf', whole(now - tonumber(servedMs)))
local forgotten = whole(now - tonumber(silence))
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', heartbeats, '-inf', forgotten, 'LIMIT', 0, 20)) do
  if not forget_worker(base, silent, now) then
    break
  end
end

local found = {}
for _, each in ipairs(redis.call('ZRANGE', inbox, 0, tonumber(limit) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. each, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ each, command[1], command[2], command[3] }) do
      found[#found + 1] = value
    end
  else
    redis.call('ZREM', inbox, each)
  end
end
local revision, level = redis.call('GET', settingsRevision) or '', redis.call('GET', logLevel) or ''
return { found, redis.call('ZRANGE', unapplied, 0, 9), revision, level }
