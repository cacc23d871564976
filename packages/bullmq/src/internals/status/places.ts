// The places of a queue: the structures that can hold a job, and the status of the tasks in each of them.
//
// This table determines how tasks are counted and listed. A place does not have to be one of BullMQ's. To add a list or set of Bullpen's
// own in which tasks wait:
//
// 1. Give it a key in ../../keys.ts and an entry here, with the status `waiting` and `waits`. Its tasks are then counted and listed.
// 2. Name it in the scripts that read several places in one step, which places.test.ts lists, and take its tasks out in
//    ../../store/lua/includes/place/leave-place.lua, so that they are cancelled and expired.
// 3. Fill it where tasks are placed (../../store/lua/includes/place/enter-place.lua), and empty it where a task is fetched
//    (../../store/lua/includes/start/task-start.lua, and next-task.lua beside it, which looks ahead). A task must be in exactly one place
//    when the script ends.
// 4. Give it a position in the order in which a cancel by filter looks for tasks (../../cancel/bulk-canceller.ts). A task that moves
//    during the scan must move on to a place that is visited later, or be noted (../../store/lua/includes/cancel/note-moved.lua).
// 5. Add an event with the task's id to the event stream whenever a task moves there, or to another position in a sorted set. A
//    recount follows these events (bytes-recount.ts).
import type { TaskStatus } from '@bullpen/contract'
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
  // The tasks with a concurrency key in a fair queue (../../store/lua/includes/lanes/lanes.lua).
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
