-- Remembers, for a short time, which tasks were deleted soon after their enqueue.
--
-- If Redis runs an add but its reply is lost, the add is sent again with the same task id. The script usually recognises the first add
-- because the task exists. By then, however, the task may have been deleted: another call may have replaced it, or it has run and is not
-- kept. Without this memory, the second add would store the task again, and would even delete a task that has replaced it.
--
-- The sorted set `recently-removed` has a member for each such task, `<id> <caller>`, followed by ` r` if the task replaced another one
-- when it was stored. The scores are the times of the enqueues. `caller` distinguishes calls that use the same id, as in the task's own
-- field. A task that is deleted later than REPEATS_WITHIN_MS after its enqueue is not remembered, so a queue that keeps its ended tasks for
-- longer has no such set. Each member takes about 130 bytes.
--
-- The script that ends a task may also delete it: the task of a run that is completed, or cancelled with its run, or a task that is not
-- kept. If that script is sent again, nothing that the attempt has stored is left. The set therefore has another member for such a
-- task, `<id> e<fencing token>` (rare-ends.lua, resent-end.lua).
--
-- remember_removal(home, member, at)  adds a member. `at` is the time of the task's enqueue, in ms since 1970, or nil for the current time
-- was_removed(home, task)             returns whether the task that is to be added (new-task.lua) was deleted soon after an earlier
--                                     call had added it, and whether it had replaced another one
--
-- `home` is the prefix of the queue's keys.
--- @include time

local REPEATS_WITHIN_MS = 20000
-- Trimming this many takes Redis about 1 ms. No script deletes more tasks, so the set does not grow; and after a burst, removing all of
-- them at once would hold up every other client.
local TRIM_AT_ONCE = 1000
local trimmed, has_removed = {}, nil

local function remember_removal(home, member, at)
  local now = millis()
  local oldest, set = now - REPEATS_WITHIN_MS, home .. 'recently-removed'
  if at and at < oldest then
    return
  end
  -- The clock of a process that uses plain BullMQ may be ahead.
  redis.call('ZADD', set, whole(math.min(at or now, now)), member)
  if trimmed[home] then
    return
  end
  trimmed[home] = true
  local old = redis.call('ZRANGE', set, '-inf', '(' .. whole(oldest), 'BYSCORE', 'LIMIT', 0, TRIM_AT_ONCE)
  if #old > 0 then
    redis.call('ZREM', set, unpack(old))
  end
  redis.call('PEXPIRE', set, REPEATS_WITHIN_MS)
end

-- Only tasks with a unique key can replace others.
local function was_removed(home, task)
  if has_removed == nil then
    has_removed = redis.call('EXISTS', home .. 'recently-removed') == 1
  end
  if not has_removed then
    return false, false
  end
  local member = task.id .. ' ' .. task.caller
  if task.unique and redis.call('ZSCORE', home .. 'recently-removed', member .. ' r') then
    return true, true
  end
  return redis.call('ZSCORE', home .. 'recently-removed', member), false
end
