#!lua flags=allow-oom
-- Changes the priority of a task, in place of BullMQ's `changePriority`. If the task is waiting and not delayed, it moves behind the others
-- of that priority or, with `lifo`, before them. The priority of a delayed task applies when it is due, and that of a running one when it
-- returns.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  priority  0 for none
-- ARGV  lifo      '1' or ''
--
-- Returns `number`: 0, or BullMQ's code -1 if the task does not exist.
--- @include place-again
--- @include leave-place
--- @include note-moved

if redis.call('EXISTS', job) == 0 then
  return -1
end
redis.call('HSET', job, 'priority', priority)
if leave_ready(id) then
  place_waiting(id, redis.call('HGET', job, 'lane'), tonumber(priority), lifo == '1')
  write_waiting()
  note_moved(id)
end
return 0
