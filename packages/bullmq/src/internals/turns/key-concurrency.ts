// Limits how many tasks of a concurrency key are active at the same time, over all workers of a queue.
//
// The hash `key-limits` has the limits: `concurrency` applies to every key, and `concurrency:<key>` to one key instead.
// A queue without limits does not have the hash, which a fetch looks for with the command that looks for lanes. Two
// sorted sets belong to the limits:
//
// - `active-by-key` counts the active tasks of each key. The list `active` is the truth, and the counts are a cache of
//   it. The script that makes a task active counts it (./turn-steps.ts). The task gives its place back where BullMQ's
//   own text removes it from `active` (withLeaves). By then BullMQ has compared the lock, so a commit that is refused
//   or sent twice gives nothing back. And the text has not fetched yet, so the script that ends a task starts the next
//   task of the same key.
// - `blocked-lanes` has the lanes that may not start a task, by the pass with which they take turns again. They are not
//   in `turns`, so they cost nothing, however many tasks wait in them. The script that starts the last task that is
//   allowed blocks the lane. When one of the key's tasks stops being active, the lane takes turns again: at its own
//   pass, or at that of the lane that is next if that is greater. A lane that was blocked for a long time therefore
//   gets no more than its turn. The field `time` of `turn-state` keeps the pass of the turn in which a lane was last
//   blocked, in case no lane takes turns then.
//
// After each script:
//
// 1. A lane with a task is either in `turns` or in `blocked-lanes`.
// 2. If the queue has limits, `active-by-key` agrees with the tasks in `active`.
// 3. A lane is blocked only if its key has as many active tasks as it may have, has used up its rate (./key-rate.ts),
//    or is throttled (./key-throttle.ts).
// 4. If a lane in `turns` has a task that may start, BullMQ's marker exists, so that an idle worker fetches.
//
// Where a limit is set, the tasks in `active` are counted in the same script (COUNT_ACTIVE), so the limit also applies
// to the tasks that already run. A lowered limit stops nothing that runs. What another tool does to an active task's
// data, or a Worker that is not attached, is not counted. The leader therefore counts from time to time, and reports
// what it has corrected.

import { TICKET_OF } from '../../store/scripts.ts'
import { nameIn } from './lanes.ts'
import {
  DECLARE_LIMITERS,
  GIVE_BACK_NEEDS,
  IN_USE,
  LIMITERS,
  READ_CAPACITIES,
  WAITED_NEEDS,
  WAITERS_OF_KEY,
  WAKE_ALL,
  WAKE_KEY,
} from './limiters/limiter-steps.ts'
import { eachNeed, splitName } from './limiters/needs.ts'
import { HAS_LIMITS, READ_FEATURES } from './queue-features.ts'

/** Lua: the names of the sorted sets. The variable `base` is the prefix of the queue's keys. */
const ACTIVE_BY_KEY = `base .. 'active-by-key'`
const BLOCKED = `base .. 'blocked-lanes'`
const LANE_TIMES = `base .. 'lane-times'`

/** A Lua function, `limit_of(base, key)`, which returns how many active tasks a key may have, or nil. */
const LIMIT_OF = `
local function limit_of(base, key)
  local own, default = unpack(redis.call('HMGET', base .. 'key-limits', 'concurrency:' .. key, 'concurrency'))
  return tonumber(own or default)
end
`

/**
 * Lua lines that set the local variables `limit` and `rate` to the limits of the key `key`. One that does not apply is
 * nil or false.
 */
export const READ_LIMITS = `local own, default, own_rate, default_rate =
          unpack(call('HMGET', base .. 'key-limits', 'concurrency:' .. key, 'concurrency', 'rate:' .. key, 'rate'))
        limit, rate = tonumber(own or default), own_rate or default_rate`

/** The Lua expression for the number of active tasks of the concurrency key `key`. */
export const ACTIVE_OF_KEY = `(tonumber(call('ZSCORE', ${ACTIVE_BY_KEY}, key)) or 0)`

/** The Lua expression that increments the number of active tasks of the key `key`, and returns the new number. */
export const COUNT_ONE = `tonumber(call('ZINCRBY', ${ACTIVE_BY_KEY}, '1', key))`

/** Lua lines that undo {@link COUNT_ONE}. */
export const UNCOUNT_ONE = `
        if call('ZINCRBY', ${ACTIVE_BY_KEY}, '-1', key) == '0' then call('ZREM', ${ACTIVE_BY_KEY}, key) end`

/** Lua lines that count the active task `id` if it has a lane, but has not been taken from it. */
export const countOther = (id: string): string => `
  if may_be_uncounted and ${id} then
    local lane = call('HGET', base .. ${id}, 'lane')
    if lane then
      ${splitName(nameIn('lane'))}
      if key ~= '' and call('EXISTS', base .. 'key-limits') == 1 then call('ZINCRBY', ${ACTIVE_BY_KEY}, '1', key) end
      if needs then
        ${DECLARE_LIMITERS}${LIMITERS}
        take(needs)
      end
    end
  end`

/** Lua lines that block the lane `name`. `pass`, a Lua expression, is the pass with which it takes turns again. */
export const leaveTurns = (pass: string): string => `call('ZREM', base .. 'turns', name)
            call('ZADD', ${BLOCKED}, ${pass}, name)`

/**
 * Lua lines that block the lane `name` in its turn. `time`, a Lua expression, is the pass of this turn, which all lanes
 * have reached.
 */
export const blockLane = (pass: string, time: string): string => `${leaveTurns(pass)}
            call('HSET', base .. 'turn-state', 'time', ${time})`

/** Lua lines that let the blocked lane `name`, a Lua expression, take turns again. `pass` is the stored pass. */
export const resume = (name = 'name'): string => `call('ZREM', ${BLOCKED}, ${name})
      local first = call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
      local time = math.max(first[2] or 0, call('HGET', base .. 'turn-state', 'time') or 0)
      call('ZADD', base .. 'turns', math.max(pass, time), ${name})
      if call('ZSCORE', base .. 'lanes', ${name}) then call('ZADD', base .. 'marker', '0', '0') end`

/**
 * Lua lines that give back the place of a task that is no longer active. `lane` is the task's field, or false. For a
 * task with a lane, the lines `before` run first. If the Lua condition `condition` is false, nothing is counted for its
 * key.
 */
const giveBack = (condition = 'true', before = ''): string => `
  if lane then
    ${splitName(nameIn('lane'))}${before}
    local left = key ~= '' and ${condition} and call('ZADD', ${ACTIVE_BY_KEY}, 'XX', 'INCR', '-1', key)
    if left then
      if tonumber(left) <= 0 then call('ZREM', ${ACTIVE_BY_KEY}, key) end
      if call('EXISTS', ${BLOCKED}, ${WAITED_NEEDS}) > 0 then
        local pass = call('ZSCORE', ${BLOCKED}, key)
        if pass and not call('ZSCORE', ${LANE_TIMES}, key) then
      ${resume('key')}
        end
        ${WAKE_KEY}
      end
    end
    if needs then${GIVE_BACK_NEEDS}
    end
  end`

/**
 * The same lines in the script that ends a task. They leave the queue's features for the fetch that follows, in
 * `features_at_end`. If the task has needs, they leave nothing: counting its calls may open or close a breaker, which
 * changes the capacities.
 */
const GIVE_BACK_AT_END = giveBack(
  HAS_LIMITS,
  `
    local features
    ${READ_FEATURES}
    if not needs then features_at_end = features end`,
)

/**
 * A Lua function, `left_active(id)`, which gives back the place of a task that was removed from `active`. Returns true.
 */
export const LEFT_ACTIVE = `
function left_active(id)
  local lane = call('HGET', base .. id, 'lane')${giveBack()}
  return true
end`

/**
 * Lua lines that let the lanes of the key `key` take turns again if its limit allows a start. Of the lanes with needs,
 * the first one is woken. The lines follow {@link COUNT_ACTIVE}, and need the local variables `call` and `base`.
 */
export const RESUME_KEY = `
    local limit = limit_of(base, key)
    if not limit or ${ACTIVE_OF_KEY} < limit then
      local pass = call('ZSCORE', ${BLOCKED}, key)
      if pass and not call('ZSCORE', ${LANE_TIMES}, key) then
      ${resume('key')}
      end
      ${WAKE_KEY}
    end`

/**
 * How many blocked lanes one count examines if no limit has changed, so that 100,000 of them do not delay other
 * scripts.
 */
const EXAMINED = 1_000

/**
 * A Lua function, `count_active(base, has_changed)`, which counts the active tasks of each key and what they hold of
 * each limiter, and lets each blocked lane that waits for nothing take turns again. Returns how many counts and lanes
 * were wrong. If a limit has changed, it examines every blocked lane, and wakes the first lane that waits for each
 * limiter. Otherwise, it examines the lanes of the keys whose counts were wrong, and others at random. If the queue
 * limits nothing, nothing remains counted. O(active tasks + counted keys + examined lanes).
 */
export const COUNT_ACTIVE = `${LIMIT_OF}${TICKET_OF}
local function count_active(base, has_changed)
  local call, counts, used, wrong = redis.call, {}, {}, 0
  ${DECLARE_LIMITERS}${LIMITERS}${WAKE_ALL}
  ${READ_CAPACITIES}
  local has_limits = call('EXISTS', base .. 'key-limits') == 1
  local is_counted = has_limits or next(capacities)
  for _, id in ipairs(is_counted and call('LRANGE', base .. 'active', 0, -1) or {}) do
    local lane = call('HGET', base .. id, 'lane')
    if lane then
      ${splitName(nameIn('lane'))}
      if has_limits and key ~= '' then counts[key] = (counts[key] or 0) + 1 end
      ${eachNeed("needs or ''")}
        if capacities[limiter] then used[limiter] = (used[limiter] or 0) + amount end
      end
    end
  end
  local function correct(set, counted, corrected)
    local stored = call('ZRANGE', set, 0, -1, 'WITHSCORES')
    for i = 1, #stored, 2 do
      local member = stored[i]
      if counted[member] ~= tonumber(stored[i + 1]) then
        wrong = wrong + 1
        if counted[member] then call('ZADD', set, counted[member], member) else call('ZREM', set, member) end
        corrected(member)
      end
      stored[member] = true
    end
    for member, count in pairs(counted) do
      if not stored[member] then
        wrong = wrong + 1
        call('ZADD', set, count, member)
      end
    end
  end
  local function examine(name, pass)
    ${splitName('name')}
    local ticket = needs and ticket_of(base, name, key, needs)
    -- Only the first of the lanes that wait for a key is woken. Each wakes the next one when it gives its ticket back.
    local first = ticket == 'key' and call('ZRANGE', ${WAITERS_OF_KEY}, 0, 0)[1]
    if first and first ~= name and (call('ZSCORE', ${BLOCKED}, first) or call('ZSCORE', base .. 'turns', first)) then return end
    local limit = (ticket == 'key' or not needs) and limit_of(base, key)
    local is_refused = ticket and ticket ~= 'key' or limit and (counts[key] or 0) >= limit
    if not is_refused and not call('ZSCORE', ${LANE_TIMES}, name) then
      wrong = wrong + 1
      ${resume()}
    end
  end
  correct(${ACTIVE_BY_KEY}, counts, function(key)
    local pass = call('ZSCORE', ${BLOCKED}, key)
    if pass then examine(key, pass) end
    ${WAKE_KEY}
  end)
  correct(${IN_USE}, used, wake)
  local blocked = has_changed and call('ZRANGE', ${BLOCKED}, 0, -1, 'WITHSCORES')
    or call('ZRANDMEMBER', ${BLOCKED}, ${EXAMINED}, 'WITHSCORES')
  for i = 1, #blocked, 2 do examine(blocked[i], blocked[i + 1]) end
  if has_changed then wake_all() end
  return wrong
end
`

// The forms in which BullMQ's scripts remove one job from `active`.

/** By a script that moves the job to another place. */
const MOVED =
  /local (numRemovedElements|removed) = rcall\("LREM", (?:KEYS\[[12]\]|activeKey), -?1, (jobId|ARGV\[4\])\)/g
/** By the removal of the job. */
const REMOVED = 'rcall("LREM", prefix .. "active", 1, jobId) == 1'

/** What the end of a job reads of it before it removes the job from `active`. */
const READ_AT_END = 'rcall("HMGET", jobIdKey, "parentKey", "parent", "deid")'

/**
 * Returns the text of a script, so that each task that it removes from `active` gives back its place. The end of a task
 * reads the task's lane with the other fields that BullMQ reads. Other scripts read it with one command.
 */
export function withLeaves(text: string): string {
  const isEnd = text.includes(READ_AT_END)
  return text
    .replace(READ_AT_END, READ_AT_END.replace('"deid"', '"deid", "lane"'))
    .replace(MOVED, (line, count: string, id: string) => {
      const lane = isEnd ? 'jobAttributes[4]' : `call('HGET', base .. ${id}, 'lane')`
      return `${line}
  if ${count} > 0 then
    local lane = ${lane}${isEnd ? GIVE_BACK_AT_END : giveBack()}
  end`
    })
    .replaceAll(REMOVED, `(${REMOVED} and (prefix ~= base or left_active(jobId)))`)
}
