#!lua flags=allow-oom
-- Stores that an attempt of a quarantined task is about to run alone in its worker's process.
--
-- KEYS[1]  job           the task
-- KEYS[2]  lock          its lock
-- ARGV[1]  token         the lock's token
-- ARGV[2]  fencingToken  that of the attempt
--
-- Returns `0 | 1`: 0 if nothing was written because the lock is lost.
local job, lock = KEYS[1], KEYS[2]
local token, fencingToken = ARGV[1], ARGV[2]

if redis.call('GET', lock) ~= token then
  return 0
end
redis.call('HSET', job, 'alone', fencingToken)
return 1
