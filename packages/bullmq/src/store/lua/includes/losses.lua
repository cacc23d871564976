-- uncount_loss(job) takes back that a task was counted as lost, because the process of the lost attempt lives. `job` is the task's key.
--
-- BullMQ's script counts in the field `stc` how often a task has lost its worker. If it was too often, the script sets the field `defa`,
-- because of which the next worker fails the task. The field `lostIn` is the fencing token of the last attempt whose loss is counted.

local function uncount_loss(job)
  -- A retry by request may have forgotten the loss meanwhile.
  if redis.call('HINCRBY', job, 'stc', -1) <= 0 then
    redis.call('HDEL', job, 'stc')
  end
  if redis.call('HGET', job, 'defa') == 'job stalled more than allowable limit' then
    redis.call('HDEL', job, 'defa')
  end
end
