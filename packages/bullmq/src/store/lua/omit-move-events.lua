#!lua flags=allow-oom
-- Lets the scripts omit BullMQ's events of moves in a namespace's queue, unless somebody reads them (../backend-events.ts). Does nothing if
-- an earlier call has done so. Runs even if Redis is full, because a worker that starts will end tasks.
--
-- KEYS  meta
-- ARGV  afterMs  for how long they are still added, in ms, because a reader may have asked for them before
--
-- Returns `null`
--- @include time

redis.call('HSETNX', meta, 'allEventsUntil', whole(millis() + afterMs))
