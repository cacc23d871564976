#!lua flags=allow-oom
-- Removes a worker that has closed from the fleet.
--
-- KEYS[1]  heartbeats  the workers by their last heartbeat
-- ARGV[1]  base        the prefix of the fleet's keys
-- ARGV[2]  id          the worker
--
-- Returns `0 | 1`: whether the worker was removed. If not, it has more pending commands than one script responds to, and the caller
-- runs the script again.
local heartbeats = KEYS[1]
local base, id = ARGV[1], ARGV[2]
--- @include forget-worker

return forget_worker(base, id, millis()) and 1 or 0
