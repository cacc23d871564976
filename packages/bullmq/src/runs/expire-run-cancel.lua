#!lua flags=allow-oom
-- Lets the keys that the cancel of a pipeline run has stored in a queue expire, once none of the run's tasks is left in the queue. Deletes
-- the rule, so that no pass has to look for its tasks. A repeated call does not prolong the times.
--
-- KEYS  cancelledGroup, cancelRules
-- KEYS  progress  the progress of the run's rule
-- KEYS  cancelPass, cancelReturned
-- ARGV  rule      the run's rule
-- ARGV  keepMs    how long the first key and the progress are kept
--- @include time

if redis.call('HDEL', cancelRules, rule) == 1 then
  redis.call('HSET', progress, 'doneAt', whole(millis()))
end
redis.call('PEXPIRE', progress, keepMs, 'LT')
redis.call('PEXPIRE', cancelledGroup, keepMs, 'LT')
if redis.call('EXISTS', cancelRules) == 0 then
  redis.call('UNLINK', cancelPass, cancelReturned)
end
