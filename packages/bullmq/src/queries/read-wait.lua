#!lua flags=no-writes
-- Reads what a queue stores about why one of its tasks does not run.
--
-- KEYS[1]  meta         BullMQ's settings of the queue
-- KEYS[2]  settings     what commands have set
-- KEYS[3]  wait         the waiting tasks without a lane and without a priority
-- KEYS[4]  prioritized  those with a priority
-- KEYS[5]  active       the active tasks
-- KEYS[6]  postponed    the quarantined tasks for which no worker had a place
-- KEYS[7]  limiter      BullMQ's counter of starts
-- ARGV[1]  id           the task
-- ARGV[2]  max          how many tasks ahead are counted, and how many places of `wait` and `active` are searched
--
-- Returns `[now: string, postponed: string | null, lost: number | null, ahead: number, meta: Array<string | null>, settings:
-- Array<string | null>, active: number, used: string | null, usedForMs: number]`: the time in ms since 1970; the score in `postponed` and the
-- place in `active` if the task is there; how many tasks start before it; `paused`, `concurrency`, `max` and `duration` of the queue; the
-- position of the command that last paused or resumed it, and its drain; how many tasks are active; the counter of starts and how long
-- it is kept. Takes O(log n) and the search.
local meta, settings, wait, prioritized = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local active, postponed, limiter = KEYS[5], KEYS[6], KEYS[7]
local id, max = ARGV[1], ARGV[2]
--- @include time

local length, rank = redis.call('LLEN', wait), redis.call('ZRANK', prioritized, id)
local ahead = length + (rank or redis.call('ZCARD', prioritized))
local place = not rank and redis.call('LPOS', wait, id, 'RANK', -1, 'MAXLEN', max)
if place then
  ahead = length - place - 1
end
return {
  whole(millis()),
  redis.call('ZSCORE', postponed, id),
  redis.call('LPOS', active, id, 'MAXLEN', max),
  math.min(ahead, tonumber(max)),
  redis.call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration'),
  redis.call('HMGET', settings, 'sequence:paused', 'drain'),
  redis.call('LLEN', active),
  redis.call('GET', limiter),
  redis.call('PTTL', limiter),
}
