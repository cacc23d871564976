// Makes BullMQ's scripts take turns between the concurrency keys of a queue.
//
// Where BullMQ's text would add a task to `wait` or `prioritized`, a task with a lane goes to its lane (withLanes).
// Where the text takes the first task, it takes the next task of the lane whose turn it is (TAKE_TURN). At that point,
// BullMQ has already moved the due tasks out of the delayed set, and has found that the queue is neither paused nor
// throttled nor at its limits. Nothing is taken that does not start.
//
// Turns are stride scheduling. Each lane has a pass, and the lane with the smallest pass is next. When one of the
// lane's tasks starts, 1 / weight is added to the pass, so a key with the weight 3 starts three tasks for each task of
// a key with the weight 1. The tasks without a lane are one lane more, with the weight 1: they start as BullMQ orders
// them, and their pass is at most one turn behind the lane that is next.
//
// If the tasks of a key need different shares of limiters, the key has several lanes (./limiters/needs.ts). They share
// its turns: a start of one of them begins at the pass that the last start of the key has reached (`key-passes`), so a
// key with three lanes starts as many tasks as one with a single lane.
//
// A lane that was empty joins an eighth of a turn behind the lane that is next. If it joined exactly there, new keys
// whose names sort first could hold up a lane whose name sorts last, because Redis orders equal passes by name.
//
// While a lane has a task, passes only grow. Before they are so large that adding 1 / weight would be inexact, all
// lanes begin again at 0. Otherwise, the passes of keys with a high weight would one day no longer change, and these
// keys would start all of their tasks first.
//
// One script looks at no more than 32 lanes, most of which are empty lanes whose turn has come. If it has found no task
// by then although there is one, it adds BullMQ's marker, so that a worker fetches again.
import { withCleanLanes } from './clean-lanes.ts'
import { blockLane, COUNT_ONE, READ_LIMITS, UNCOUNT_ONE } from './key-concurrency.ts'
import { CHECK_RATE, COUNT_START_OF_RATE, resumeDue, STORE_TIME } from './key-rate.ts'
import { enterLane, listOf, nameIn, noteLeft, prioritiesOf, weightIn } from './lanes.ts'
import {
  DECLARE_LIMITERS,
  FORGET_WAITERS,
  KEY_PASSES,
  LIMITERS,
  TAKE_TICKETS,
  WAITED_NEEDS,
  waitForKey,
} from './limiters/limiter-steps.ts'
import { splitName } from './limiters/needs.ts'
import { READ_FEATURES, READ_OBSTACLES } from './queue-features.ts'

/** How many lanes one script looks at. */
export const MAX_LANES = 32

/**
 * The pass at which all lanes begin again. Up to here, a turn of the smallest length, 0.001, is added with an error of
 * 0.1 % at most.
 */
const LAST_PASS = 0x100000000

/** Lua lines that delete what is stored about turns. No task may be in a lane. */
export const FORGET_TURNS = `call('UNLINK', base .. 'turns', base .. 'turn-state', base .. 'blocked-lanes', base .. 'lane-times', ${KEY_PASSES})
      ${FORGET_WAITERS}`

/**
 * Lua lines that give each lane the pass 0. A lane stays blocked unless it waits for a limiter. O(n log n), at most
 * once in {@link LAST_PASS} turns.
 */
const BEGIN_AGAIN = `
        local blocked = base .. 'blocked-lanes'
        ${TAKE_TICKETS}
        call('ZUNIONSTORE', blocked, '1', blocked, 'WEIGHTS', '0')
        call('ZDIFFSTORE', turns, '2', lanes, blocked)
        call('ZUNIONSTORE', turns, '1', turns, 'WEIGHTS', '0')
        call('UNLINK', ${KEY_PASSES})
        call('HDEL', state, 'pass', 'time')`

/**
 * Lua lines that set `pass` to the pass from which the lane `name` counts its turn, if it has waited for a limiter. It
 * kept its place among those that wait, but gets no more than its turn among all lanes.
 */
const CATCH_UP = `
            local other = call('ZRANGE', turns, 1, 1, 'WITHSCORES')
            local time = math.max(other[2] or 0, call('HGET', state, 'time') or 0)
            if leave_waiters(name, key, needs) then pass = math.max(pass, time) end`

/**
 * Lua lines that make the next task of the lane whose turn it is active, and store its id in `jobId`. If it is the turn
 * of the tasks without a lane, `is_turn_of_others` is true. Then, or if no task in a lane may start, `jobId` remains
 * nil. `may_be_uncounted` then says whether the task that starts may have to be counted (./key-concurrency.ts).
 * `is_last_start` says whether no further task may start until one ends, so that no worker has to wake.
 * `features_at_end` is what the end of the last task has found (./queue-features.ts), or nil. The lines need these five
 * variables, `call` and `base`.
 *
 * A task that another tool has deleted is dropped.
 */
export const TAKE_TURN = `
  local features = features_at_end
  -- A lane may have got its first task since the last task ended, so that an even number is not reliable.
  if not features or features % 2 == 0 then
    ${READ_FEATURES}
  end
  if features > 0 then
    local turns, lanes, state, active = base .. 'turns', base .. 'lanes', base .. 'turn-state', base .. 'active'
    ${READ_OBSTACLES}
    local is_last_lane, stays_in_turns = false, false
    is_turn_of_others = false
    local is_counted = has_limits or has_capacities
    ${DECLARE_LIMITERS}
    may_be_uncounted = is_counted
    if has_times then${resumeDue('ARGV[2]', MAX_LANES)}
    end
    for _ = 1, ${MAX_LANES} do
      local name, pass = unpack(call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
      if name and tonumber(pass) >= ${LAST_PASS} then${BEGIN_AGAIN}
        name, pass = unpack(call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
      end
      if not name then break end
      pass = tonumber(pass)
      if has_others then
        local own = math.max(tonumber(call('HGET', state, 'pass') or pass), pass - 1)
        if own <= pass then
          is_turn_of_others = true
          call('HSET', state, 'pass', own + 1)
          break
        end
      end
      ${splitName('name')}
      local limit, rate, id
      if has_limits and key ~= '' then
        ${READ_LIMITS}
      end
      ${CHECK_RATE}
      -- A lane that takes turns can nearly always start a task, so the start is counted before the limit is compared, and uncounted if nothing starts.
      local active_of_key = has_limits and key ~= '' and not starts_at and ${COUNT_ONE}
      local is_at_limit, refused, time = starts_at or limit and active_of_key > limit, nil, nil
      -- If the queue limits nothing, needs cost nothing either.
      local is_limited = needs and (is_counted or call('EXISTS', ${WAITED_NEEDS}) == 1)
      if is_limited then
        if not take then${LIMITERS}
        end
        if not call('ZSCORE', lanes, name) then is_at_limit = false
        elseif is_at_limit then leave_waiters(name, key, needs, not starts_at and 'key' or nil)
        else refused, time = refusals(name, key, needs, pass) end
      end
      if refused then
        wait_for(name, refused, pass, time)
        if string.find(refused[1], '^service:') then gates().note(refused[1]) end
      elseif is_at_limit and is_limited and not starts_at then
        ${waitForKey('pass', 'nil')}
      elseif is_at_limit then
        ${blockLane('pass', 'pass')}
        ${STORE_TIME}
      else
        id = call('RPOPLPUSH', ${listOf('name')}, active)
        if not id then
          id = call('ZPOPMIN', ${prioritiesOf('name')})[1]
          if id then call('LPUSH', active, id) end
        end
        if not id then
          call('ZREM', turns, name)
          if is_limited then leave_waiters(name, key, needs) end
          if needs then call('ZREMRANGEBYSCORE', ${KEY_PASSES}, '-inf', pass) end
          is_last_lane = not has_others and call('EXISTS', lanes) == 0
        end
      end
      if id then${noteLeft('name')}
        local lane = call('HGET', base .. id, 'lane')
        if not lane then
          call('LPOP', active)
        else
          if is_limited and call('EXISTS', ${WAITED_NEEDS}) == 1 then${CATCH_UP}
          end
          local key_pass = has_key_passes and tonumber(call('ZSCORE', ${KEY_PASSES}, key) or nil)
          local next_pass = math.max(pass, key_pass or pass) + 1 / ${weightIn('lane')}
          if key_pass or needs then call('ZADD', ${KEY_PASSES}, next_pass, key) end
          ${COUNT_START_OF_RATE}
          if is_limited then take(needs) end
          if needs and string.find(needs, 'service:', 1, true) then gates().admit(id, needs) end
          if limit and active_of_key >= limit and is_limited and not starts_at then
            ${waitForKey('next_pass', 'pass')}
          elseif starts_at or limit and active_of_key >= limit then
            ${blockLane('next_pass', 'pass')}
            ${STORE_TIME}
          else
            call('ZADD', turns, next_pass, name)
            refused = is_limited and call('ZSCORE', lanes, name) and refusals(name, key, needs, next_pass)
            if refused then wait_for(name, refused, next_pass, pass) end
            stays_in_turns = not refused
          end
          jobId, may_be_uncounted = id, false
          break
        end
      end
      if active_of_key then${UNCOUNT_ONE} end
      if is_last_lane then break end
    end
    is_last_start = jobId and is_counted and not stays_in_turns
      and call('EXISTS', turns, wait, prioritized, base .. 'delayed', base .. 'lane-times') == 0
    if not jobId and not is_turn_of_others then
      local remaining = call('EXISTS', turns, lanes, lanes)
      if remaining == 0 or remaining == 1 and not has_others then
        ${FORGET_TURNS}
      elseif remaining == 3 then
        call('ZADD', base .. 'marker', 0, '0')
      end
    end
  end`

/**
 * Lua lines that return the task `jobId`, which has just become active, to its lane, because another tool has put it
 * into `wait`: there, no limit would apply. It was not the turn of the tasks without a lane. `lane` is the task's
 * field. The lines need the variables of {@link TAKE_TURN}.
 */
export const RETURN_STRAY = `
    call('LPOP', base .. 'active')
    if is_turn_of_others then call('HINCRBYFLOAT', base .. 'turn-state', 'pass', '-1') end${enterLane({ lane: 'lane', id: 'jobId', toHead: 'true', priority: '0' })}
    jobId = nil`

/**
 * A Lua line that counts a start outside of the lane's turn, unless the lane is blocked. `lane` is the task's field.
 */
export const COUNT_START = `call('ZADD', base .. 'turns', 'XX', 'INCR', 1 / ${weightIn('lane')}, ${nameIn('lane')})`

// A replacement is a function, because `$'` in a string would have a meaning of its own.

/**
 * How BullMQ's scripts add a job to `wait` or to `prioritized`, remove a job from there, and look whether there are
 * any, in the order of the functions below.
 */
const PUSH = 'rcall(pushCmd, targetKey, jobId)'
const PUSH_SEVERAL = 'rcall("LPUSH", KEYS[4], unpack(jobs, from, to))'
const PRIORITIZE = 'rcall("ZADD", prioritizedKey, score, jobId)'
const REMOVE = 'rcall("LREM", prefix .. "wait", 1, jobId) == 1'
const REMOVE_FIRST = 'rcall("LREM", waitKey, -1, jobId) > 0'
const COUNT = 'return waitCount + prioritizedCount'
const REPORT_DRAINED = 'rcall("XADD", eventStreamKey, "*", "event", "drained")'

/**
 * Lua: the priority, and whether the task is the first one of its priority, in the score that BullMQ has given to it.
 */
const PRIORITY = 'math.floor(score / 0x100000000)'
const IS_FIRST = 'score % 0x100000000 == 0'

/**
 * Returns a script's text, so that a task with a lane returns to its lane. A task is looked up by one
 * command, whether or not it has a lane. The promotion of due tasks already reads their fields
 * (../quarantine-steps.ts).
 */
export function withLanes(text: string): string {
  return withCleanLanes(text)
    .replaceAll(
      PUSH,
      () => `local lane = targetKey == base .. 'wait' and call('HGET', base .. jobId, 'lane')
  if lane then${enterLane({ lane: 'lane', id: 'jobId', toHead: `pushCmd == 'RPUSH'`, priority: '0' })}
  else ${PUSH} end`,
    )
    .replaceAll(
      PRIORITIZE,
      () => `local lane = prioritizedKey == base .. 'prioritized' and call('HGET', base .. jobId, 'lane')
  if lane then${enterLane({ lane: 'lane', id: 'jobId', toHead: IS_FIRST, priority: PRIORITY })}
  else ${PRIORITIZE} end`,
    )
    .replaceAll(
      PUSH_SEVERAL,
      () => `for i = from, to do
          local lane = call('HGET', base .. jobs[i], 'lane')
          if lane then${enterLane({ lane: 'lane', id: 'jobs[i]', toHead: 'false', priority: '0' })}
          else rcall("LPUSH", KEYS[4], jobs[i]) end
        end`,
    )
    .replaceAll(REMOVE, `(${REMOVE} or prefix == base and left_lane(jobId))`)
    .replaceAll(REMOVE_FIRST, `(left_lane(jobId) or ${REMOVE_FIRST})`)
    .replaceAll(COUNT, `return waitCount + prioritizedCount + call('EXISTS', base .. 'lanes')`)
    .replaceAll(REPORT_DRAINED, `if call('EXISTS', base .. 'lanes') == 0 then ${REPORT_DRAINED} end`)
}
