// The places of a queue: the structures that can hold a job, and the status of the tasks in each of them.
//
// This table determines how tasks are counted and listed, and how a task that never ran is ended. A place does not have to be one
// of BullMQ's. To add a list or set of Bullpen's own in which tasks wait:
//
// 1. Give it a key in ../../keys.ts and an entry here, with the status `waiting` and `waits`. Its tasks are then counted, listed,
//    cancelled and expired.
// 2. Name it in the scripts that read several places in one step, which places.test.ts lists.
// 3. Fill it from the steps around BullMQ's adds, and empty it where a task is fetched (../composition/composed-scripts.ts). A
//    task must be in exactly one place when the script ends.
// 4. Give it a position in the order in which a cancel by filter looks for tasks (../../cancel/bulk-canceller.ts). A task that moves
//    during the scan must move on to a place that is visited later.
// 5. Add an event with the task's id to the event stream whenever a task moves there, or to another position in a sorted set. A
//    recount follows these events (bytes-recount.ts).
import type { TaskStatus } from '@bullpen/contract'
import { LEAVE_LANE } from '../turns/lanes.ts'
import type { PARTS } from './status-index.ts'

interface Place {
  readonly type: 'list' | 'sorted set' | 'lanes'
  readonly status: TaskStatus
  /** The BullMQ set that this place is a part of. A job in this place is also in that set (status-index.ts). */
  readonly partOf?: keyof typeof PARTS
  /** Whether a task in this place can be ended although it has not finished running. */
  readonly waits?: true
}

/** A job is in one place at a time. */
export const PLACES = {
  wait: { type: 'list', status: 'waiting', waits: true },
  prioritized: { type: 'sorted set', status: 'waiting', waits: true },
  // The tasks with a concurrency key in a fair queue (../turns/lanes.ts).
  lanes: { type: 'lanes', status: 'waiting', waits: true },
  // Only a team's own flows have tasks here. These tasks wait for their children, and can't be ended.
  waitingChildren: { type: 'sorted set', status: 'waiting' },
  scheduled: { type: 'sorted set', status: 'scheduled', partOf: 'delayed', waits: true },
  retrying: { type: 'sorted set', status: 'retrying', partOf: 'delayed', waits: true },
  active: { type: 'list', status: 'active' },
  completed: { type: 'sorted set', status: 'completed' },
  dead: { type: 'sorted set', status: 'dead', partOf: 'failed' },
  cancelled: { type: 'sorted set', status: 'cancelled', partOf: 'failed' },
  expired: { type: 'sorted set', status: 'expired', partOf: 'failed' },
} as const satisfies Record<string, Place>

export type PlaceName = keyof typeof PLACES

export const PLACE_NAMES = Object.keys(PLACES) as readonly PlaceName[]

/** Returns the places that hold the tasks with the given status. */
export function placesOf(status: TaskStatus): readonly PlaceName[] {
  return PLACE_NAMES.filter((name) => PLACES[name].status === status)
}

/** BullMQ stores the due time of a delayed job in the upper bits of its score, and a counter in the lower twelve. */
export const DELAYED_SCORE_STEP = 0x1000

/** The structures that hold jobs, by their keys without the queue's prefix, in kebab case as in ../../keys.ts. */
const STRUCTURES: ReadonlyMap<string, Place> = new Map(
  Object.entries<Place>(PLACES).map(([name, place]) => [
    (place.partOf ?? name).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    place,
  ]),
)

/** How many of a list's newest tasks are searched first. This search takes Redis about 3 µs. */
export const NEWEST = 250

/**
 * Returns Lua lines that check whether this structure holds the task. If it does, the lines return, and first remove the task if
 * it waits there.
 */
function lookIn(name: string, { type, waits }: Place): string {
  const key = `base .. '${name}'`
  if (type === 'lanes') {
    return `  local lane = call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) then return '${name}' end`
  }
  if (type === 'list') {
    // Callers don't search `active`, because its tasks have a lock.
    if (!waits) return ''
    // The newest tasks are at the left end, and the oldest ones at the right end, where LREM starts if the count is negative.
    return `  local newest = call('LPOS', ${key}, id, 'MAXLEN', ${NEWEST})
  if call('LREM', ${key}, newest and 1 or -1, id) == 1 then return '${name}' end`
  }
  if (waits) return `  if call('ZREM', ${key}, id) == 1 then return '${name}' end`
  return `  if call('ZSCORE', ${key}, id) then return nil end`
}

/** The order in which places are searched for a task. Only a task with a concurrency key is searched for in the lanes. */
const SEARCHED: readonly Place['type'][] = ['sorted set', 'lanes', 'list']

/**
 * A Lua function, `take_out(id)`, which removes a task from the list or set in which it waits. Returns the name of that list or
 * set, or nil if the task is in none. The function needs the local variables `call` and `base`.
 *
 * A list is searched last, and from both ends, because the search passes every task on its way: removing a task from the middle
 * of a list of 200,000 takes Redis about 1 ms. A task that is in any sorted set is found without such a search.
 */
export const TAKE_OUT = `${LEAVE_LANE}
local function take_out(id)
${[...STRUCTURES]
  .toSorted(([, one], [, other]) => SEARCHED.indexOf(one.type) - SEARCHED.indexOf(other.type))
  .map(([name, place]) => lookIn(name, place))
  .filter((line) => line !== '')
  .join('\n')}
end
`
