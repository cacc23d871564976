#!lua flags=allow-oom
-- Stores that an attempt of a quarantined task is about to run alone in its worker's process.
--
-- KEYS[1]  job           the task
-- ARGV[1]  token         the lock's token
-- ARGV[2]  fencingToken  that of the attempt
--
-- Returns `0 | 1`: 0 if nothing was written because the lock is lost.
local job = KEYS[1]
local token, fencingToken = ARGV[1], ARGV[2]
--- @include lock

if not owns_lock(job, token) then
  return 0
end
redis.call('HSET', job, 'alone', fencingToken)
return 1
