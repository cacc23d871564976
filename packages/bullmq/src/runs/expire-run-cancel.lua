#!lua flags=allow-oom
-- Lets the keys that the cancel of a pipeline run has stored in a queue expire, once none of the run's tasks is left in the queue. Deletes
-- the rule, so that no pass has to look for its tasks. A repeated call does not prolong the times.
--
-- KEYS[1]  cancelledGroup  refuses further tasks of the run
-- KEYS[2]  cancelRules     the rules of cancels by filter
-- KEYS[3]  progress        the progress of the run's rule
-- KEYS[4]  cancelPass      the current pass of the bulk canceller
-- KEYS[5]  cancelReturned  the tasks that have returned from `active`
-- ARGV[1]  rule            the run's rule
-- ARGV[2]  keepMs          how long the first key and the progress are kept
local cancelledGroup, cancelRules, progress, cancelPass, cancelReturned = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rule, keepMs = ARGV[1], ARGV[2]
--- @include time

if redis.call('HDEL', cancelRules, rule) == 1 then
  redis.call('HSET', progress, 'doneAt', whole(millis()))
end
redis.call('PEXPIRE', progress, keepMs, 'LT')
redis.call('PEXPIRE', cancelledGroup, keepMs, 'LT')
if redis.call('EXISTS', cancelRules) == 0 then
  redis.call('UNLINK', cancelPass, cancelReturned)
end
