#!lua flags=allow-oom
-- Changes the priority of a task, in place of BullMQ's `changePriority`. If the task is waiting and not delayed, it moves behind the others
-- of that priority or, with `lifo`, before them. The priority of a delayed task applies when it is due, and that of a running one when it
-- returns.
--
-- KEYS[1]  job       the task
-- ARGV[1]  base      the prefix of the queue's keys
-- ARGV[2]  id        the task's id
-- ARGV[3]  priority  0 for none
-- ARGV[4]  lifo      '1' or ''
--
-- Returns `number`: 0, or BullMQ's code -1 if the task does not exist.
local job = KEYS[1]
local base, id, priority, lifo = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
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
