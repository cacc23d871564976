-- oldest_tasks(base, limits) returns the id of the waiting task that has been ready for the longest time, since when it has been ready,
-- and the same of the oldest blocked task; all are nil if there is no such task. The function looks at the next task of each place and
-- of some lanes, so its time does not depend on the number of tasks or lanes. `base` is the prefix of the queue's keys, and `limits` is
-- the result of `limits_at` (blocked-tasks.lua).
--- @include lane-tasks
--- @include ready-at

-- How many lanes are looked at in each order. In a queue with more lanes, these are the ones that have had a task for the longest time, and
-- those that have been blocked for the longest time.
local OLDEST_LANES = 32

local function oldest_tasks(base, limits)
  local oldest, since, blocked, blocked_since
  local seen = {}
  local function consider(id, is_blocked)
    local ready = id and ready_at(base, id)
    if not ready then
      return
    end
    if not since or ready < since then
      oldest, since = id, ready
    end
    if is_blocked and (not blocked_since or ready < blocked_since) then
      blocked, blocked_since = id, ready
    end
  end
  local function consider_lanes(set, is_blocked)
    for _, lane in ipairs(redis.call('ZRANGE', set, 0, OLDEST_LANES - 1)) do
      if not seen[lane] then
        consider(lane_head(base, lane), limits.holds_all or not limits.due[lane] and is_blocked(lane))
      end
      seen[lane] = true
    end
  end
  consider(redis.call('LINDEX', base .. 'wait', -1), limits.holds_all)
  consider(redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1], limits.holds_all)
  if limits.has_blocked_lanes then
    consider_lanes(base .. 'blocked-lanes', function()
      return true
    end)
  end
  local has_more = limits.has_blocked_lanes and redis.call('ZCARD', base .. 'blocked-lanes') > OLDEST_LANES
  consider_lanes(base .. 'lanes', function(lane)
    return has_more and redis.call('ZSCORE', base .. 'blocked-lanes', lane)
  end)
  return oldest, since, blocked, blocked_since
end
