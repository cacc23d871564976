#!lua flags=allow-oom
-- Lets the scripts add all of BullMQ's events to the queue's stream for some time, because a reader follows it (../backend-events.ts).
-- A queue without the field has all events at any time.
--
-- KEYS  meta
-- ARGV  forMs  for how long, in ms
--
-- Returns `null`
--- @include time

if redis.call('HEXISTS', meta, 'allEventsUntil') == 1 then
  redis.call('HSET', meta, 'allEventsUntil', whole(millis() + forMs))
end
