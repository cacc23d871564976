#!lua flags=no-writes
-- Counts what a light drain of a queue's fleet waits for: the tasks that wait or are active, the delayed tasks that are due by Redis's
-- clock, the entries of the outbox, and the quarantined tasks that are not due yet because no worker had a place for them. Such a task is
-- in `postponed` with the same score as in `delayed`. If the scores differ, the task has left the delayed set since.
--
-- KEYS[1]  wait
-- KEYS[2]  prioritized
-- KEYS[3]  lanes
-- KEYS[4]  turnState    the state of the lanes
-- KEYS[5]  active
-- KEYS[6]  delayed
-- KEYS[7]  postponed
-- KEYS[8]  outbox
-- ARGV[1]  scoreStep    the step of a delayed score (internals/status/places.ts)
--
-- Returns `number`
local wait, prioritized, lanes, turnState = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local active, delayed, postponed, outbox = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local scoreStep = ARGV[1]
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
