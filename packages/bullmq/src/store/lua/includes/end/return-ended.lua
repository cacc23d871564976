-- Returns a task that has ended to the place where it waits, by request.
--
-- leave_ended(id, set)                         takes a task out of `set`, `completed` or `failed`, and returns whether it was there
-- return_ended(task, set, forgotten, to_head)  puts the task where it waits: behind the others or, if `to_head`, before those without a
--                                              priority. `task` has its `id`, and the values of its fields `lane`, `priority`, `deaths` and
--                                              `parentKey` (`parent`). `forgotten` has the fields to delete that its attempts have left
--
-- The caller calls write_waiting (place-task.lua) after the last task. `base` is the prefix of the queue's keys. BullMQ's own retry changes
-- the same fields and adds the same event. A caller that changes the size of the task does so between the two calls, because the second one
-- charges for the task again. If processes have died because of the task, it keeps one of these deaths: without any, it would not run in
-- quarantine first, and with all of them, it would be poison at once.
--- @include failed-set
--- @include place-again
--- @include task-charge
--- @include note-moved

-- If the end of the child was reported to the parent of its flow, makes the child one of the parent's dependencies again.
local function return_to_parent(job, parent, set)
  if redis.call('EXISTS', parent) == 0 then
    return
  end
  local was_told = set == 'completed' and redis.call('HDEL', parent .. ':processed', job) == 1
    or set == 'failed' and redis.call('ZREM', parent .. ':unsuccessful', job) == 1
    or set == 'failed' and redis.call('HDEL', parent .. ':failed', job) == 1
  if was_told then
    redis.call('SADD', parent .. ':dependencies', job)
  end
end

local function leave_ended(id, set)
  if set == 'failed' then
    return leave_failed(base, id)
  end
  return redis.call('ZREM', base .. set, id) == 1
end

local function return_ended(task, set, forgotten, to_head)
  local id, job, priority = task.id, base .. task.id, tonumber(task.priority) or 0
  redis.call('HDEL', job, 'finishedOn', 'processedOn', 'lock', unpack(forgotten))
  if task.deaths then
    redis.call('HSET', job, 'deaths', '1', 'stc', '1')
  end
  -- The leader may not yet have removed a request to cancel an earlier attempt of the task.
  redis.call('HDEL', base .. 'cancelling', id)
  charge(base, job, 1)
  redis.call('HINCRBY', base .. 'totals', 'retried', 1)
  place_waiting(id, task.lane, priority, to_head and priority == 0)
  add_move_event('waiting', id, 'prev', set)
  if task.parent then
    return_to_parent(job, task.parent, set)
  end
  note_moved(id)
end
