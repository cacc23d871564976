// Lanes: the waiting tasks with the same concurrency key that need the same shares of limiters (./limiters/needs.ts). A
// task without a lane has no concurrency key in a fair queue, and needs nothing.
//
// A lane consists of a list and, for tasks with a priority, a sorted set. As in BullMQ, the tasks of the list start
// first, and the next one is at the right end of the list. Five kinds of key belong to the lanes of a queue
// (../../keys.ts):
//
// - `lane:<name>` and `lane-priorities:<name>` hold the tasks of one lane.
// - `lanes` names each lane that has a task, in the order in which the lanes received their first task. The lanes are
//   listed and scanned in this order, which does not change while a lane has a task.
// - `turns` has the lanes by their pass. The lane with the smallest pass is next (./turn-steps.ts). A lane that has
//   become empty keeps its place until its turn, because a key with one task at a time would otherwise always be first.
// - `turn-state` has the number of tasks in all lanes (`waiting`), a counter (`order`), and the pass of the tasks
//   without a key (`pass`).
//
// When no task waits, the next fetch deletes all of them.
//
// The name of a lane is its concurrency key or, if its tasks need shares of limiters, the key and these needs. A task's
// own field `lane` has the weight of its turn and the name of its lane, separated by a blank. The field is written when
// the task is added, and never changes. The task is in its lane whenever it waits, whichever script has returned it
// there. If a Worker that is not attached has put the task into `wait`, the task starts from there, or returns to its
// lane if the queue limits anything.

import type { Need, NewTask } from '@bullpen/engine'
import { resumeEmptied } from './limiters/limiter-steps.ts'
import { keyIn, laneName } from './limiters/needs.ts'

/** Returns the field `lane` of a task, or '' if the task has no lane. */
export function encodeLane({ turn, needs = [], services = [] }: Pick<NewTask, 'turn' | 'needs' | 'services'>): string {
  if (turn === undefined && needs.length === 0 && services.length === 0) return ''
  const { key, weight } = turn ?? { key: '', weight: 1 }
  return `${weight} ${laneName(key, [...needs, ...services.map(toNeed)])}`
}

/**
 * Returns the concurrency key in the field `lane` of a task, or undefined. The envelope of a task whose key takes turns
 * does not contain the key, which would take Redis 40 bytes more for each task.
 */
export function keyOfLane(lane: string | undefined): string | undefined {
  return lane === undefined ? undefined : keyIn(lane.slice(lane.indexOf(' ') + 1))
}

/** A task needs 1 of each service on which it depends (../../store/lua/includes/gates.lua). */
const toNeed = (service: string): Need => ({ limiter: `service:${service}`, amount: 1 })

/** The Lua expression for a lane's list. `name` is a Lua expression. */
export const listOf = (name: string): string => `base .. 'lane:' .. ${name}`
/** The Lua expression for the sorted set of a lane's tasks with a priority. */
export const prioritiesOf = (name: string): string => `base .. 'lane-priorities:' .. ${name}`

/** The Lua expression for the name of the lane in the field `lane`. */
export const nameIn = (lane: string): string => `string.match(${lane}, ' (.*)$')`
/** The Lua expression for the weight in the field `lane`. */
export const weightIn = (lane: string): string => `tonumber(string.match(${lane}, '^%S+'))`

/** By how much a lane that was empty joins behind the lane that is next, in turns. See ./turn-steps.ts. */
const JOINS_BEHIND = 0.125

/** BullMQ's factor between a priority and the counter that orders the tasks with the same priority. */
const PRIORITY_STEP = 0x100000000

interface Entering {
  /** Lua expressions. `lane` is the task's field. */
  readonly lane: string
  readonly id: string
  /** Whether the task is the next one of its lane, or of its priority in the lane. */
  readonly toHead: string
  /** The task's priority, or 0. */
  readonly priority: string
  /**
   * Lua lines that follow. In them, `lane_name` is the name of the lane, and `was_empty` says whether the task is the
   * only one of its lane. If it is, `is_blocked` says whether the lane is blocked.
   */
  readonly last?: string
}

/** Lua lines that put a task into its lane. They need the local variables `call` and `base`. */
export const enterLane = ({ lane, id, toHead, priority, last = '' }: Entering): string => `
  do
    local lane_name, state = ${nameIn(lane)}, base .. 'turn-state'
    local list, priorities, was_empty, is_blocked = ${listOf('lane_name')}, ${prioritiesOf('lane_name')}, false, false
    local to_head, priority = ${toHead}, ${priority}
    if priority > 0 then
      was_empty = call('EXISTS', list, priorities) == 0
      local order = to_head and 0 or call('HINCRBY', state, 'order', 1) % ${PRIORITY_STEP}
      call('ZADD', priorities, priority * ${PRIORITY_STEP} + order, ${id})
    else
      was_empty = call(to_head and 'RPUSH' or 'LPUSH', list, ${id}) == 1 and call('EXISTS', priorities) == 0
    end
    call('HINCRBY', state, 'waiting', 1)
    if was_empty then
      call('ZADD', base .. 'lanes', call('HINCRBY', state, 'order', 1), lane_name)
      is_blocked = call('ZSCORE', base .. 'blocked-lanes', lane_name)
      if not is_blocked then
        local first = call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
        local time, others = unpack(call('HMGET', state, 'time', 'pass'))
        -- A lane that has waited for a limiter takes turns at an early pass.
        local pass = (first[2] or time) and math.max(first[2] or 0, time or 0) + ${JOINS_BEHIND} or others or 0
        call('ZADD', base .. 'turns', 'NX', pass, lane_name)
      end
    end${last}
  end`

/**
 * Lua lines that note that `count` tasks have left the lane `name`. Both are Lua expressions. The lines need the local
 * variables `call` and `base`.
 */
export const noteLeft = (name: string, count = '1'): string => `
    call('HINCRBY', base .. 'turn-state', 'waiting', -${count})
    if call('EXISTS', ${listOf(name)}, ${prioritiesOf(name)}) == 0 then
      call('ZREM', base .. 'lanes', ${name})${resumeEmptied(name)}
    end`

/** How many of a lane's newest tasks are searched first, as in a queue's own list (../status/places.ts). */
const NEWEST = 250

/**
 * A Lua function, `leave_lane(lane, id)`, which removes a task from its lane. Returns whether the task was there.
 * `lane` is the task's field. The function needs the local variables `call` and `base`.
 */
export const LEAVE_LANE = `
local function leave_lane(lane, id)
  local name = ${nameIn('lane')}
  local list = ${listOf('name')}
  if call('ZREM', ${prioritiesOf('name')}, id) == 0 then
    local newest = call('LPOS', list, id, 'MAXLEN', ${NEWEST})
    if call('LREM', list, newest and 1 or -1, id) == 0 then return false end
  end
  ${noteLeft('name')}
  return true
end
`
