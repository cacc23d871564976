#!lua flags=no-writes
-- Looks whether a task may have ended, for a caller that is about to wait for its end. Most tasks of such callers have not, and to read
-- such a task as a whole costs several times as much.
--
-- KEYS  job, completed, failed, cancelRules
-- ARGV  id
--
-- Returns `0 | 1`: 1 also if the task does not exist.
if redis.call('EXISTS', job) == 0 or redis.call('EXISTS', cancelRules) == 1 then
  return 1
end
return (redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id)) and 1 or 0
