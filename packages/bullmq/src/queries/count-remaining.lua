#!lua flags=no-writes
-- Counts what a light drain of a queue's fleet waits for: the tasks that wait or are active, the delayed tasks that are due by Redis's
-- clock, the entries of the outbox, and the quarantined tasks that are not due yet because no worker had a place for them. Such a task is
-- in `postponed` with the same score as in `delayed`. If the scores differ, the task has left the delayed set since.
--
-- KEYS  wait, prioritized, lanes, turnState, active, delayed, postponed, outbox
-- ARGV  scoreStep  the step of a delayed score (internals/status/places.ts)
--
-- Returns `number`
--- @include time

local due = (millis() + 1) * tonumber(scoreStep)
local waiting = redis.call('LLEN', wait)
  + redis.call('ZCARD', prioritized)
  + (tonumber(redis.call('HGET', turnState, 'waiting')) or 0)
local later = redis.call('ZRANGEBYSCORE', postponed, whole(due), '+inf', 'WITHSCORES')
for i = 1, #later, 2 do
  if redis.call('ZSCORE', delayed, later[i]) == later[i + 1] then
    waiting = waiting + 1
  end
end
local due_tasks = redis.call('ZCOUNT', delayed, '-inf', '(' .. whole(due))
return waiting + due_tasks + redis.call('LLEN', active) + redis.call('XLEN', outbox)
