#!lua flags=allow-oom
-- Lets the scripts add all of BullMQ's events to the queue's stream for some time, because a reader follows it (../backend-events.ts).
-- A queue without the field has all events at any time.
--
-- KEYS[1]  meta
-- ARGV[1]  forMs  for how long, in ms
--
-- Returns `null`
local meta = KEYS[1]
local forMs = ARGV[1]
--- @include time

if redis.call('HEXISTS', meta, 'allEventsUntil') == 1 then
  redis.call('HSET', meta, 'allEventsUntil', whole(millis() + forMs))
end
