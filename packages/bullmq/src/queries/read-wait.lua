#!lua flags=no-writes
-- Reads what a queue stores about why one of its tasks does not run.
--
-- KEYS  meta, settings, wait, prioritized, active, postponed, limiter
-- ARGV  id
-- ARGV  max  how many tasks ahead are counted, and how many places of `wait` and `active` are searched
--
-- Returns `[now: string, postponed: string | null, lost: number | null, ahead: number, meta: Array<string | null>, settings:
-- Array<string | null>, active: number, used: string | null, usedForMs: number]`: the time in ms since 1970; the score in `postponed` and the
-- place in `active` if the task is there; how many tasks start before it; `paused`, `concurrency`, `max` and `duration` of the queue; the
-- position of the command that last paused or resumed it, and its drain; how many tasks are active; the counter of starts and how long
-- it is kept. Takes O(log n) and the search.
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
