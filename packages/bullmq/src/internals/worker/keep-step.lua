#!lua flags=allow-oom
-- Stores the result of a finished step of a running task, unless the step has one. Runs even if Redis is full, because the step's side
-- effect has already happened. Checking the lock's token is not enough, because a plain BullMQ Worker may use the same token for the next
-- attempt.
--
-- KEYS  job
-- ARGV  token         the lock's token
-- ARGV  fencingToken  that of the attempt
-- ARGV  field         the step's field in the job's hash
-- ARGV  result        as JSON
--
-- Returns `string | null`: the step's stored result, or null if nothing was written because the task now has another owner.
--- @include lock

if not owns_lock(job, token) or redis.call('HGET', job, 'ats') ~= fencingToken then
  return false
end
redis.call('HSETNX', job, field, result)
return redis.call('HGET', job, field)
