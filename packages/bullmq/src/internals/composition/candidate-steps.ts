// Takes one of some given tasks instead of the first one, in the scripts that fetch a task (./fetch-steps.ts). A consumer that
// runs only one group sends the ids of these tasks (engine, pool/group-candidates.ts). All other steps of the fetch stay as
// they are: delayed tasks that are due start to wait, and nothing is fetched from a queue that is paused, throttled or at its
// limits.
//
// If there are no candidates, a fetch pays for one comparison. Otherwise, the script looks at the candidates one after the other, which
// takes about 1 µs for each candidate that does not wait, and 3 µs for one that waits but may not start, because
// it examines each lane once. It then removes one task from the list of waiting tasks. To find the task,
// Redis passes all tasks that are older, which takes it about 1 ms for every 100,000 of them.
import { NEWEST } from '../status/places.ts'
import { ACTIVE_OF_KEY, leaveTurns, READ_LIMITS } from '../turns/key-concurrency.ts'
import { CHECK_RATE, COUNT_START_OF_RATE, resumeDue, STORE_TIME } from '../turns/key-rate.ts'
import { LEAVE_LANE, nameIn } from '../turns/lanes.ts'
import { DECLARE_LIMITERS, LIMITERS } from '../turns/limiters/limiter-steps.ts'
import { splitName } from '../turns/limiters/needs.ts'
import { READ_FEATURES, READ_OBSTACLES } from '../turns/queue-features.ts'
import { COUNT_START, FORGET_TURNS, MAX_LANES } from '../turns/turn-steps.ts'

/**
 * The candidates of a consumer as the scripts' argument. Without a consumer's candidates, the argument is '', and the scripts take the
 * first task. With candidates, it begins with a blank, so that a consumer that has none at the moment takes nothing.
 */
export function candidatesArgument(ids: readonly string[]): string {
  return ` ${ids.join(' ')}`
}

/**
 * Lua lines that make one of the candidates active and store its id in `jobId`, if one waits. As in BullMQ, tasks without a priority
 * come first. A task that is locked, delayed or active, or that has ended, is not searched for in the list of waiting tasks, because
 * the search would pass the whole list.
 *
 * Like a fetch without candidates, the lines let the lanes whose time has come take turns, and block the lane of a candidate
 * whose key may not start a task yet. It is not the lane's turn, so its pass says nothing about that of the other lanes. The
 * worker then waits until the next such time, and not for a time that has passed. A candidate does not wait behind the lanes
 * that wait for the same limiters: they may have tasks that no worker runs at the moment.
 */
export const TAKE_CANDIDATE = `${LEAVE_LANE}
  local features
  ${READ_FEATURES}
  ${READ_OBSTACLES}
  local active = base .. 'active'
  local has_set, has_lanes = call('EXISTS', prioritized) == 1, call('EXISTS', base .. 'lanes') == 1
  may_be_uncounted = has_limits or has_capacities
  if has_times then${resumeDue('ARGV[2]', MAX_LANES)}
  end
  local noted, at_limit = {}, {}
  ${DECLARE_LIMITERS}
  local function is_at_limit(lane, has_started)
    local name, limit, rate = ${nameIn('lane')}, nil, nil
    ${splitName('name')}
    if needs then
      if not take then${LIMITERS}
      end
      for need in string.gmatch(needs, 'service:[^,]+') do
        if not noted[need] and call('HEXISTS', base .. 'capacities', string.match(need, '^[^=]+')) == 1 then gates().note(need) end
        noted[need] = true
      end
    end
    if key ~= '' then
    ${READ_LIMITS}
    end
    ${CHECK_RATE}
    if has_started then
      ${COUNT_START_OF_RATE}
      if needs and call('ZSCORE', base .. 'turns', name) then leave_waiters(name, key, needs) end
    end
    local pass = starts_at and call('ZSCORE', base .. 'turns', name)
    if pass then
      if needs then leave_waiters(name, key, needs) end
      ${leaveTurns('pass')}
      ${STORE_TIME}
    end
    return starts_at or limit and ${ACTIVE_OF_KEY} >= limit or needs and is_full(needs)
  end
  local has_list = has_lanes or call('EXISTS', wait) == 1
  local first, lowest
  if has_list or has_set then
    for id in string.gmatch(candidates, '%S+') do
      local score = has_set and tonumber(call('ZSCORE', prioritized, id) or nil)
      if score then
        if not lowest or score < lowest then first, lowest = id, score end
      elseif has_list and call('EXISTS', base .. id .. ':lock') == 0 then
        local known = call('HMGET', base .. id, 'timestamp', 'finishedOn', 'lane')
        local lane = known[3]
        local may_start = known[1] and not known[2]
        if may_start and lane and (may_be_uncounted or has_throttles) then
          if at_limit[lane] == nil then at_limit[lane] = is_at_limit(lane) or false end
          may_start = not at_limit[lane]
        end
        if may_start and not call('ZSCORE', base .. 'delayed', id) and not call('LPOS', active, id) then
          if lane and has_lanes and leave_lane(lane, id) then
            ${COUNT_START}
            ${splitName(nameIn('lane'))}
            if has_limits or needs then is_at_limit(lane, true) end
            if needs and string.find(needs, 'service:', 1, true) then gates().admit(id, needs) end
            jobId = id
            break
          end
          local newest = call('LPOS', wait, id, 'MAXLEN', ${NEWEST})
          if call('LREM', wait, newest and 1 or -1, id) == 1 then
            jobId = id
            break
          end
        end
      end
    end
  else
    ${FORGET_TURNS}
  end
  if not jobId and first then
    call('ZREM', prioritized, first)
    jobId = first
  end
  if jobId then call('LPUSH', active, jobId) end`
