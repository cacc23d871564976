#!lua flags=allow-oom
-- Lets a task that has ended run again, in place of BullMQ's `reprocessJob`.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  set       where the task is: `completed` or `failed`
-- ARGV  lifo      '1' to start the task before the others, unless it has a priority
-- ARGV  attempts  '1' to forget how many attempts the task has made
-- ARGV  starts    '1' to forget how often the task has been started
--
-- Returns `number`: 1, or BullMQ's code if nothing was done: -1 if the task does not exist, and -3 if it is not in the set. A task whose
-- compensations were released is refused as well, because BullMQ's own retry cannot say that they are intended to stay.
--- @include return-ended

local name, compensated, lane, priority, deaths, parent =
  unpack(redis.call('HMGET', job, 'name', 'compensated', 'lane', 'priority', 'deaths', 'parentKey'))
if not name then
  return -1
end
if compensated or not redis.call('ZSCORE', base .. set, id) then
  return -3
end
local forgotten = { set == 'completed' and 'returnvalue' or 'failedReason' }
if attempts == '1' then
  forgotten[#forgotten + 1] = 'atm'
end
if starts == '1' then
  forgotten[#forgotten + 1] = 'ats'
end
leave_ended(id, set)
local task = { id = id, lane = lane, priority = priority, deaths = deaths, parent = parent }
return_ended(task, set, forgotten, lifo == '1')
write_waiting()
return 1
