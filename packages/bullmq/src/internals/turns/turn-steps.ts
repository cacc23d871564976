// Makes BullMQ's scripts take turns between the concurrency keys of a queue.
//
// Where BullMQ's text would add a task to `wait` or `prioritized`, a task with a lane goes to its lane (withLanes). Where the text takes
// the first task, it takes the next task of the lane whose turn it is (TAKE_TURN). At that point, BullMQ has already moved the due
// tasks out of the delayed set, and has found that the queue is neither paused nor throttled nor at its limits. Nothing is taken that
// does not start.
//
// Turns are stride scheduling. Each lane has a pass, and the lane with the smallest pass is next. When one of the lane's tasks
// starts, 1 / weight is added to the pass, so a key with the weight 3 starts three tasks for each task of a key with the weight 1.
// The tasks without a key are one lane more, with the weight 1: they start as BullMQ orders them, and their pass is at most one
// turn behind the lane that is next.
//
// A lane that was empty joins an eighth of a turn behind the lane that is next. If it joined exactly there, new keys whose names
// sort first could hold up a lane whose name sorts last, because Redis orders equal passes by name.
//
// While a lane has a task, passes only grow. Before they are so large that adding 1 / weight would be inexact, all lanes begin again at
// 0. Otherwise, the passes of keys with a high weight would one day no longer change, and these keys would start all of their tasks first.
//
// One script looks at no more than 32 lanes, most of which are empty lanes whose turn has come. If it has found no task by then
// although there is one, it adds BullMQ's marker, so that a worker fetches again.
import { withCleanLanes } from './clean-lanes.ts'
import { ACTIVE_OF_KEY, blockLane, COUNT_ONE, READ_LIMITS } from './key-concurrency.ts'
import { CHECK_RATE, COUNT_START_OF_RATE, resumeDue, STORE_TIME } from './key-rate.ts'
import { READ_WHAT_LIMITS } from './key-throttle.ts'
import { enterLane, keyIn, listOf, noteLeft, prioritiesOf, weightIn } from './lanes.ts'

/** How many lanes one script looks at. */
export const MAX_LANES = 32

/** The pass at which all lanes begin again. Up to here, a turn of the smallest length, 0.001, is added with an error of 0.1 % at most. */
const LAST_PASS = 0x100000000

/** A Lua line that deletes what is stored about turns. No task may be in a lane. */
export const FORGET_TURNS = `call('UNLINK', base .. 'turns', base .. 'turn-state', base .. 'blocked-lanes', base .. 'lane-times')`

/** Lua lines that give each lane the pass 0. A blocked lane stays blocked. O(n log n), at most once in {@link LAST_PASS} turns. */
const BEGIN_AGAIN = `
        local blocked = base .. 'blocked-lanes'
        call('ZUNIONSTORE', blocked, '1', blocked, 'WEIGHTS', '0')
        call('ZDIFFSTORE', turns, '2', lanes, blocked)
        call('ZUNIONSTORE', turns, '1', turns, 'WEIGHTS', '0')
        call('HDEL', state, 'pass', 'time')`

/**
 * Lua lines that make the next task of the lane whose turn it is active, and store its id in `jobId`. If it is the turn of the tasks
 * without a key, or if no task in a lane may start, `jobId` remains nil. `may_be_uncounted` then says whether the task that starts may have
 * to be counted (./key-concurrency.ts). `is_last_start` says whether no further task may start until one ends, so that no worker has to wake. The
 * lines need these three variables, `call` and `base`.
 *
 * A task that another tool has deleted is dropped.
 */
export const TAKE_TURN = `
  if call('EXISTS', base .. 'turns', base .. 'turn-state', base .. 'key-limits') > 0 then
    local turns, lanes, state = base .. 'turns', base .. 'lanes', base .. 'turn-state'
    ${READ_WHAT_LIMITS}
    local has_others = call('EXISTS', base .. 'wait', base .. 'prioritized') > 0
    local is_turn_of_others = false
    may_be_uncounted = has_limits
    if has_times then${resumeDue('ARGV[2]', MAX_LANES)}
    end
    for _ = 1, ${MAX_LANES} do
      local key, pass = unpack(call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
      if key and tonumber(pass) >= ${LAST_PASS} then${BEGIN_AGAIN}
        key, pass = unpack(call('ZRANGE', turns, 0, 0, 'WITHSCORES'))
      end
      if not key then
        if call('EXISTS', lanes) == 0 then call('UNLINK', state, base .. 'blocked-lanes', base .. 'lane-times') end
        break
      end
      pass = tonumber(pass)
      if has_others then
        local own = math.max(tonumber(call('HGET', state, 'pass') or pass), pass - 1)
        if own <= pass then
          is_turn_of_others = true
          call('HSET', state, 'pass', own + 1)
          break
        end
      elseif call('EXISTS', lanes) == 0 then
        ${FORGET_TURNS}
        break
      end
      local limit, rate, id
      if has_limits then
        ${READ_LIMITS}
      end
      ${CHECK_RATE}
      if starts_at or limit and ${ACTIVE_OF_KEY} >= limit then
        ${blockLane('pass', 'pass')}
        ${STORE_TIME}
      else
        id = call('RPOP', ${listOf('key')}) or call('ZPOPMIN', ${prioritiesOf('key')})[1]
        if not id then call('ZREM', turns, key) end
      end
      if id then${noteLeft('key')}
        local lane = call('HGET', base .. id, 'lane')
        if lane then
          call('LPUSH', base .. 'active', id)
          local next_pass = pass + 1 / ${weightIn('lane')}
          ${COUNT_START_OF_RATE}
          local active = has_limits and ${COUNT_ONE}
          if starts_at or limit and active >= limit then
            ${blockLane('next_pass', 'pass')}
            ${STORE_TIME}
          else
            call('ZADD', turns, next_pass, key)
          end
          jobId, may_be_uncounted = id, false
          break
        end
      end
    end
    is_last_start = jobId and has_limits
      and call('EXISTS', turns, base .. 'wait', base .. 'prioritized', base .. 'delayed', base .. 'lane-times') == 0
    if not jobId and not is_turn_of_others and call('EXISTS', turns, lanes) == 2 then call('ZADD', base .. 'marker', 0, '0') end
  end`

/** A Lua line that counts a start outside of the lane's turn, unless the lane is blocked. `lane` is the task's field. */
export const COUNT_START = `call('ZADD', base .. 'turns', 'XX', 'INCR', 1 / ${weightIn('lane')}, ${keyIn('lane')})`

// A replacement is a function, because `$'` in a string would have a meaning of its own.

/**
 * How BullMQ's scripts add a job to `wait` or to `prioritized`, remove a job from there, and look whether there are any, in the order of
 * the functions below.
 */
const PUSH = 'rcall(pushCmd, targetKey, jobId)'
const PUSH_SEVERAL = 'rcall("LPUSH", KEYS[4], unpack(jobs, from, to))'
const PRIORITIZE = 'rcall("ZADD", prioritizedKey, score, jobId)'
const REMOVE = 'rcall("LREM", prefix .. "wait", 1, jobId) == 1'
const REMOVE_FIRST = 'rcall("LREM", waitKey, -1, jobId) > 0'
const COUNT = 'return waitCount + prioritizedCount'
const REPORT_DRAINED = 'rcall("XADD", eventStreamKey, "*", "event", "drained")'

/**
 * Lua lines that end the function which adds a task before it adds the marker, if the task's lane is blocked until another task ends. No worker
 * could start it. If the lane is blocked until some time, an idle worker has to know that time.
 */
const WAKE_NOBODY = `
    local key = ${keyIn('lane')}
    if call('ZSCORE', base .. 'blocked-lanes', key) and not call('ZSCORE', base .. 'lane-times', key) then return end`

/** Lua: the priority, and whether the task is the first one of its priority, in the score that BullMQ has given to it. */
const PRIORITY = 'math.floor(score / 0x100000000)'
const IS_FIRST = 'score % 0x100000000 == 0'

/**
 * Returns the text of a script that adds a task, so that the task `id` goes to its lane if `lane` is not ''. The text never adds another
 * task of the same queue, except for a parent, which has another id.
 */
export function withLaneOfAdded(text: string): string {
  const isLaned = `lane ~= '' and jobId == id`
  return text
    .replaceAll(
      PUSH,
      () => `if ${isLaned} and targetKey == base .. 'wait' then${enterLane({ lane: 'lane', id: 'jobId', toHead: `pushCmd == 'RPUSH'`, priority: '0' })}${WAKE_NOBODY}
  else ${PUSH} end`,
    )
    .replaceAll(
      PRIORITIZE,
      () => `if ${isLaned} and prioritizedKey == base .. 'prioritized' then${enterLane({ lane: 'lane', id: 'jobId', toHead: 'false', priority: PRIORITY })}${WAKE_NOBODY}
  else ${PRIORITIZE} end`,
    )
}

/**
 * Returns the text of any other script, so that a task with a lane returns to its lane. A task is looked up by one command, whether or
 * not it has a lane. The promotion of due tasks already reads their fields (../quarantine-steps.ts).
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
