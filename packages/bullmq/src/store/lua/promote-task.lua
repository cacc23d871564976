#!lua flags=allow-oom
-- Lets a delayed task start at once, in place of BullMQ's `promote`. A task that has waited for a place in quarantine keeps its turn
-- (includes/end/task-return.lua).
--
-- KEYS  job
-- ARGV  base, id
--
-- Returns `number`: 0, or BullMQ's code -3 if the task is not delayed or does not exist.
--- @include place-again
--- @include leave-place

if redis.call('EXISTS', job) == 0 or not leave_delayed(base, id) then
  return -3
end
local lane, priority, keeps_turn = unpack(redis.call('HMGET', job, 'lane', 'priority', 'waits'))
redis.call('HSET', job, 'delay', '0')
if keeps_turn then
  redis.call('HDEL', job, 'waits')
end
place_waiting(id, lane, tonumber(priority) or 0, keeps_turn)
add_move_event('waiting', id, 'prev', 'delayed')
write_waiting()
return 0
