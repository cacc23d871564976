// Lua that finds the waiting task that starts next, without taking it.
import { listOf, prioritiesOf } from './lanes.ts'

/** How many lanes are looked at. The others are empty lanes whose turn has come, which a fetch will skip. */
const MAX_LANES = 32

/**
 * A Lua function, `next_task(base)`, which returns the id of the waiting task that starts next, or nil. O(1). `base` is
 * the prefix of the queue's keys. See ./turn-steps.ts.
 */
export const NEXT_TASK = `
local function next_task(base)
  local call = redis.call
  -- BullMQ starts the tasks without a priority first.
  local other = call('LINDEX', base .. 'wait', -1) or call('ZRANGE', base .. 'prioritized', 0, 0)[1]
  if call('EXISTS', base .. 'lanes') == 0 then return other end
  local turns = call('ZRANGE', base .. 'turns', 0, ${MAX_LANES - 1}, 'WITHSCORES')
  local own = tonumber(call('HGET', base .. 'turn-state', 'pass') or turns[2])
  for i = 1, #turns, 2 do
    local lane, pass = turns[i], tonumber(turns[i + 1])
    if other and math.max(own, pass - 1) <= pass then return other end
    local id = call('LINDEX', ${listOf('lane')}, -1) or call('ZRANGE', ${prioritiesOf('lane')}, 0, 0)[1]
    if id then return id end
  end
  return other
end
`
