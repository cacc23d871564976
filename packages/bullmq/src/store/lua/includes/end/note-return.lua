-- note_return(id) notes that a task has returned to a place where it waits, if a cancel by filter may be looking for it. Otherwise, a pass
-- through the queue would miss a task that moves at the wrong moments (cancel/forget-rules.lua). `base` is the prefix of the queue's keys.
local has_cancel_rules

local function note_return(id)
  if has_cancel_rules == nil then
    has_cancel_rules = redis.call('EXISTS', base .. 'cancel-rules') == 1
  end
  if has_cancel_rules then
    redis.call('SADD', base .. 'cancel-returned', id)
  end
end
