-- unmark(id) removes the marks of the last checks for lost tasks from a task that leaves `active`, or whose lock was renewed: the mark of
--            Bullpen's check (recover.lua), and that of a BullMQ Worker without Bullpen's backend, which does not see Bullpen's locks.
--
-- `base` is the prefix of the queue's keys.
local has_marks

local function unmark(id)
  local own, others = base .. 'unrenewed', base .. 'stalled'
  if has_marks == nil then
    has_marks = redis.call('EXISTS', own, others) > 0
  end
  if has_marks then
    redis.call('SREM', own, id)
    redis.call('SREM', others, id)
  end
end
