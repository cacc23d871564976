#!lua flags=allow-oom
-- Notes that the process of an attempt lives although the attempt has lost its lock, for example because Redis did not respond for longer
-- than a lock lasts. The loss then counts neither as a death of a process nor towards the number of losses that a task may have, whether or
-- not the leader has already recovered the task. The script may be sent again.
--
-- KEYS  job
-- ARGV  fencingToken  the fencing token of the attempt
--- @include losses

if redis.call('HGET', job, 'diedIn') == fencingToken then
  redis.call('HDEL', job, 'diedIn')
  if redis.call('HINCRBY', job, 'deaths', -1) <= 0 then
    redis.call('HDEL', job, 'deaths', 'alone')
  end
end
if redis.call('HGET', job, 'lostIn') == fencingToken then
  redis.call('HDEL', job, 'lostIn')
  uncount_loss(job)
elseif redis.call('HGET', job, 'ats') == fencingToken then
  redis.call('HSET', job, 'livedIn', fencingToken)
end
