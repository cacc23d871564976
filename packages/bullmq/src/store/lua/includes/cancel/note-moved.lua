-- note_moved(id) notes a waiting task that the scan of a cancel by filter may miss, if the queue has cancel rules: one that has
-- returned to a place where it waits, or that has moved to where the scan may already have been. The rules are deleted only after a
-- look at these tasks (cancel/forget-rules.lua). A scan visits `active`, `delayed`, `prioritized`, the lanes and `wait`, in this order,
-- and a set from its lowest score, so it does not miss a task that moves further along. `base` is the prefix of the queue's keys.
local has_cancel_rules

local function note_moved(id)
  if has_cancel_rules == nil then
    has_cancel_rules = redis.call('EXISTS', base .. 'cancel-rules') == 1
  end
  if has_cancel_rules then
    redis.call('SADD', base .. 'cancel-returned', id)
  end
end
