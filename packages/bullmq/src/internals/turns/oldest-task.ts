// Lua that finds the waiting task which has been ready for the longest time, whether or not it could start.

/**
 * How many lanes are looked at in each order. In a queue with more lanes, these are the ones that have had a task for
 * the longest time, and those that have been blocked for the longest time.
 */
const LANES = 32

/**
 * A Lua function, `oldest_task(base)`, which returns the id of the task and the time since which it has been ready, or
 * nothing if no task is waiting. It looks at the next task of each place and each lane. O(1). It needs the function
 * `head_of_lane` (./blocked-tasks.ts) and `ready_at` (../ready-at.ts).
 */
export const OLDEST_TASK = `
local function oldest_task(base)
  local call, oldest, since, seen = redis.call, nil, nil, {}
  local function consider(id)
    local ready = id and ready_at(base, id)
    if ready and (not since or ready < since) then oldest, since = id, ready end
  end
  local function consider_lanes(set)
    for _, lane in ipairs(call('ZRANGE', set, 0, ${LANES - 1})) do
      if not seen[lane] then consider(head_of_lane(base, lane)) end
      seen[lane] = true
    end
  end
  consider(call('LINDEX', base .. 'wait', -1))
  consider(call('ZRANGE', base .. 'prioritized', 0, 0)[1])
  consider_lanes(base .. 'lanes')
  if call('ZCARD', base .. 'lanes') > ${LANES} then consider_lanes(base .. 'blocked-lanes') end
  return oldest, since
end
`
