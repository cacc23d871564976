// Lua that finds the waiting task which has been ready for the longest time, and the one among those that no free slot
// could start.

/**
 * How many lanes are looked at in each order. In a queue with more lanes, these are the ones that have had a task for
 * the longest time, and those that have been blocked for the longest time.
 */
const LANES = 32

/**
 * A Lua function, `oldest_tasks(base, limits)`, which returns the id of the oldest waiting task and the time since which
 * it has been ready, and the same of the oldest blocked one. They are nil if there is no such task. It looks at the next
 * task of each place and of each of these lanes, so the time does not depend on the number of tasks or lanes. It needs
 * the function `head_of_lane` and the result of `limits_at` (./blocked-tasks.ts), and `ready_at` (../ready-at.ts).
 */
export const OLDEST_TASKS = `
local function oldest_tasks(base, limits)
  local call, oldest, since, blocked, blocked_since, seen = redis.call, nil, nil, nil, nil, {}
  local function consider(id, is_blocked)
    local ready = id and ready_at(base, id)
    if not ready then return end
    if not since or ready < since then oldest, since = id, ready end
    if is_blocked and (not blocked_since or ready < blocked_since) then blocked, blocked_since = id, ready end
  end
  local function consider_lanes(set, is_blocked)
    for _, lane in ipairs(call('ZRANGE', set, 0, ${LANES - 1})) do
      if not seen[lane] then consider(head_of_lane(base, lane), limits.holds_all or not limits.due[lane] and is_blocked(lane)) end
      seen[lane] = true
    end
  end
  consider(call('LINDEX', base .. 'wait', -1), limits.holds_all)
  consider(call('ZRANGE', base .. 'prioritized', 0, 0)[1], limits.holds_all)
  if limits.has_blocked_lanes then consider_lanes(base .. 'blocked-lanes', function() return true end) end
  local has_more = limits.has_blocked_lanes and call('ZCARD', base .. 'blocked-lanes') > ${LANES}
  consider_lanes(base .. 'lanes', function(lane) return has_more and call('ZSCORE', base .. 'blocked-lanes', lane) end)
  return oldest, since, blocked, blocked_since
end
`
