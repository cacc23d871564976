#!lua flags=no-writes
-- Looks whether a task may have ended, for a caller that is about to wait for its end. Most tasks of such callers have not, and to read
-- such a task as a whole costs several times as much.
--
-- KEYS[1]  job
-- KEYS[2]  completed
-- KEYS[3]  failed
-- KEYS[4]  cancelRules  the rules of cancels by filter, one of which may match the task
-- ARGV[1]  id
--
-- Returns `0 | 1`: 1 also if the task does not exist.
local job, completed, failed, cancelRules = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id = ARGV[1]

if redis.call('EXISTS', job) == 0 or redis.call('EXISTS', cancelRules) == 1 then
  return 1
end
return (redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id)) and 1 or 0
