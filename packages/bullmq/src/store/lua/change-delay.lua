#!lua flags=allow-oom
-- Changes when a delayed task is due, in place of BullMQ's `changeDelay`.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  delay  how long the task waits from now on, in ms
--
-- Returns `number`: 0, or BullMQ's code: -1 if the task does not exist, and -3 if it is not delayed.
--- @include place-again
--- @include note-moved

-- Returns the set of the task's status. A Queue with BullMQ's own backend has added the task to neither of
-- them.
local function part_of()
  if redis.call('ZSCORE', base .. 'scheduled', id) then
    return 'scheduled'
  end
  local has_failed = (tonumber(redis.call('HGET', job, 'atm')) or 0) > 0
  return (has_failed or redis.call('ZSCORE', base .. 'retrying', id)) and 'retrying' or 'scheduled'
end

if redis.call('EXISTS', job) == 0 then
  return -1
end
local part = part_of()
if not leave_delayed(base, id) then
  return -3
end
local due = millis() + math.max(0, delay)
redis.call('HSET', job, 'delay', delay)
delay_task(id, due, part)
add_move_event('delayed', id, 'delay', whole(due))
write_waiting()
note_moved(id)
return 0
