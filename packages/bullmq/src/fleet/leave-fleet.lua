#!lua flags=allow-oom
-- Removes a worker that has closed from the fleet.
--
-- KEYS  heartbeats
-- ARGV  base
-- ARGV  id  the worker
--
-- Returns `0 | 1`: whether the worker was removed. If not, it has more pending commands than one script responds to, and the caller
-- runs the script again.
--- @include forget-worker

return forget_worker(base, id, millis()) and 1 or 0
