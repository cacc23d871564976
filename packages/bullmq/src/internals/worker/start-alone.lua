#!lua flags=allow-oom
-- Stores that an attempt of a quarantined task is about to run alone in its worker's process.
--
-- KEYS  job
-- ARGV  token         the lock's token
-- ARGV  fencingToken  that of the attempt
--
-- Returns `0 | 1`: 0 if nothing was written because the lock is lost.
--- @include lock

if not owns_lock(job, token) then
  return 0
end
redis.call('HSET', job, 'alone', fencingToken)
return 1
