#!lua flags=allow-oom
-- Changes the data of a job, in place of BullMQ's `updateData`. A task that has not ended is charged for what the data takes
-- (includes/task/task-charge.lua).
--
-- KEYS  job, totals
-- ARGV  data  the new data as JSON
--
-- Returns `number`: 0, or BullMQ's code -1 if the job does not exist.
if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('HEXISTS', job, 'finishedOn') == 0 then
  redis.call('HINCRBY', totals, 'bytes', #data - redis.call('HSTRLEN', job, 'data'))
end
redis.call('HSET', job, 'data', data)
return 0
