// Lua that counts the waiting tasks which no worker could start at the moment, however many slots are free, and finds
// the one that starts next.
//
// A waiting task is blocked if its lane is (./key-concurrency.ts), or if no task of the queue may start: because of a
// limit that a command has set, or because a handler has thrown `rateLimited`. A pause and a drain block nothing in
// this sense. Nothing is stored for the count, so an enqueue, a fetch and an end cost nothing more.
//
// Whether a lane is blocked is decided when its turn comes. A lane that takes turns therefore counts as one that may
// start a task, until a worker with a free slot finds out. And a lane whose time has come counts as one that may start
// a task, although only the next fetch lets it take turns again: if no worker fetches, its tasks wait for the workers
// and not for their limit.
import { THROTTLE_MARK } from '../throttle.ts'
import { listOf, prioritiesOf } from './lanes.ts'
import { waitersOf } from './limiters/limiter-steps.ts'
import { NEXT_TASK } from './next-task.ts'

/** Of how many lanes the tasks are counted, so that the time does not depend on the number of lanes. */
export const COUNTED_LANES = 100

/**
 * Three Lua functions. `base` is the prefix of the queue's keys, and `now` the time in ms since 1970.
 *
 * - `head_of_lane(base, lane)` returns the id of the lane's next task, or nil if there is none.
 * - `next_startable(base, now)` returns the id of the waiting task that starts next, or nil if no waiting task could
 *   start.
 * - `count_blocked(base, now)` returns the number of blocked tasks. It is exact if at most {@link COUNTED_LANES} lanes
 *   take turns. Otherwise, it is the number of tasks in the first {@link COUNTED_LANES} blocked lanes, and never too
 *   high.
 *
 * O(1).
 */
export const BLOCKED_TASKS = `${NEXT_TASK}
local function head_of_lane(base, lane)
  return redis.call('LINDEX', ${listOf('lane')}, -1) or redis.call('ZRANGE', ${prioritiesOf('lane')}, 0, 0)[1]
end

local function tasks_in(base, lanes)
  local count = 0
  for _, lane in ipairs(lanes) do
    count = count + redis.call('LLEN', ${listOf('lane')}) + redis.call('ZCARD', ${prioritiesOf('lane')})
  end
  return count
end

-- Returns whether no task of the queue may start. BullMQ's scripts compare the same values.
local function is_limited(base)
  local call = redis.call
  local concurrency, max = unpack(call('HMGET', base .. 'meta', 'concurrency', 'max'))
  if concurrency and call('LLEN', base .. 'active') >= tonumber(concurrency) then return true end
  local used = call('GET', base .. 'limiter')
  -- A worker with a rate of its own applies a throttle, although the queue has no rate.
  max = max or '${THROTTLE_MARK}'
  return used and tonumber(used) >= tonumber(max) and call('PTTL', base .. 'limiter') > 0
end

-- Returns how many tasks are in blocked lanes whose time has come, and the first of these lanes. If it is time to probe a service, one task counts.
local function due_tasks(base, now)
  local call, count, first = redis.call, 0, nil
  local function add(lane, most)
    if not call('ZSCORE', base .. 'blocked-lanes', lane) then return end
    local tasks = math.min(tasks_in(base, { lane }), most)
    count = count + tasks
    if tasks > 0 then first = first or lane end
  end
  for _, name in ipairs(call('ZRANGEBYSCORE', base .. 'lane-times', '-inf', now, 'LIMIT', 0, ${COUNTED_LANES})) do
    local service = string.match(name, ${String.raw`'^\30(service:[^=]*)$'`})
    if not service then add(name, math.huge)
    else
      local is_closed = call('HEXISTS', base .. 'capacities', service) == 0
      local waiters = call('ZRANGE', ${waitersOf(`service .. '=1'`)}, 0, is_closed and ${COUNTED_LANES - 1} or 0)
      for _, lane in ipairs(waiters) do add(lane, is_closed and math.huge or 1) end
    end
  end
  return count, first
end

local function next_startable(base, now)
  if is_limited(base) then return nil end
  local id = next_task(base)
  if id then return id end
  local _, lane = due_tasks(base, now)
  return lane and head_of_lane(base, lane)
end

local function count_blocked(base, now)
  local call = redis.call
  local in_lanes = tonumber(call('HGET', base .. 'turn-state', 'waiting')) or 0
  -- The parents of a team's own flows.
  local count = call('ZCARD', base .. 'waiting-children')
  if is_limited(base) then return count + in_lanes + call('LLEN', base .. 'wait') + call('ZCARD', base .. 'prioritized') end
  if in_lanes == 0 or call('EXISTS', base .. 'blocked-lanes') == 0 then return count end
  local blocked
  if call('ZCARD', base .. 'turns') <= ${COUNTED_LANES} then
    blocked = in_lanes - tasks_in(base, call('ZRANGE', base .. 'turns', 0, -1))
  else
    blocked = tasks_in(base, call('ZRANGE', base .. 'blocked-lanes', 0, ${COUNTED_LANES - 1}))
  end
  return count + math.max(0, blocked - due_tasks(base, now))
end
`
