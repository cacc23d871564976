-- What a script does if no task has started, or none may be left.
--
-- next_due(base)   when the next task is due (delayed-set.lua)
-- wake_when_due()  lets an idle worker wake then. If a task has started, the worker that is woken next finds out itself
-- note_drained()   adds BullMQ's event `drained` if no task is waiting or active. Delayed tasks do not count
--
-- `base` is the prefix of the queue's keys.
--- @include time
--- @include delayed-set

local function wake_when_due()
  local at = next_due(base)
  if at then
    redis.call('ZADD', base .. 'marker', whole(at), '1')
  end
end

local function note_drained()
  local wait, active, prioritized, lanes = base .. 'wait', base .. 'active', base .. 'prioritized', base .. 'lanes'
  if redis.call('EXISTS', wait, active, prioritized, lanes) == 0 then
    redis.call('XADD', base .. 'events', '*', 'event', 'drained')
  end
end
