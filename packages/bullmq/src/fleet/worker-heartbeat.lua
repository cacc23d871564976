#!lua flags=allow-oom
-- Stores a worker's status, and returns the commands that are addressed to the worker. Also forgets up to twenty silent workers.
--
-- KEYS[1]  heartbeats        the workers by their last heartbeat
-- KEYS[2]  worker            the worker
-- KEYS[3]  inbox             the commands that it has not responded to
-- KEYS[4]  unapplied         the commands whose queue settings may not have been applied
-- KEYS[5]  settingsRevision  changes whenever the settings of a queue change
-- KEYS[6]  logLevel          the log level of all processes
-- KEYS[7]  served            the queues by when a worker last served them
-- ARGV[1]  base              the prefix of the fleet's keys
-- ARGV[2]  id                the worker's id
-- ARGV[3]  status            its encoded status
-- ARGV[4]  slots             its encoded slots
-- ARGV[5]  silence           after how long without a heartbeat a worker is forgotten, in ms
-- ARGV[6]  limit             how many commands are returned
-- ARGV[7]  servedMs          for how long it is known when a queue was last served
-- ARGV...                    the queues that the worker serves
--
-- Returns `[commands: string[], unapplied: string[], revision: string, logLevel: string]`: the oldest commands, each as its id, spec,
-- sender and time; up to ten unapplied commands; the revision and the log level, or ''.
local heartbeats, worker, inbox = KEYS[1], KEYS[2], KEYS[3]
local unapplied, settingsRevision, logLevel, served = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local base, id, status, slots = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local silence, limit, servedMs = ARGV[5], ARGV[6], ARGV[7]
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
