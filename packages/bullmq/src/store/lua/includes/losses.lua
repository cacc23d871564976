-- Counts how often a task has lost its worker. BullMQ's script counts each loss in `stc`, and lets the next worker fail the task if there were
-- too many. A loss is uncounted if the process of the attempt lives. `lostIn` is the fencing token of the last attempt whose loss is counted.

local function uncount_loss(job)
  redis.call('HINCRBY', job, 'stc', -1)
  if redis.call('HGET', job, 'defa') == 'job stalled more than allowable limit' then
    redis.call('HDEL', job, 'defa')
  end
end
