// The places of a queue: the structures that can hold a job, and the status of the tasks in each of them.
import type { TaskStatus } from '@bullpen/contract'

interface Place {
  readonly type: 'list' | 'sorted set'
  readonly status: TaskStatus
}

/**
 * A job is in one place at a time. `scheduled` and `retrying` divide BullMQ's set `delayed`, and `dead`, `cancelled` and `expired`
 * divide its set `failed` (status-index.ts).
 */
export const PLACES = {
  wait: { type: 'list', status: 'waiting' },
  prioritized: { type: 'sorted set', status: 'waiting' },
  // Only the flows of a team's own have tasks here.
  waitingChildren: { type: 'sorted set', status: 'waiting' },
  scheduled: { type: 'sorted set', status: 'scheduled' },
  retrying: { type: 'sorted set', status: 'retrying' },
  active: { type: 'list', status: 'active' },
  completed: { type: 'sorted set', status: 'completed' },
  dead: { type: 'sorted set', status: 'dead' },
  cancelled: { type: 'sorted set', status: 'cancelled' },
  expired: { type: 'sorted set', status: 'expired' },
} as const satisfies Record<string, Place>

export type PlaceName = keyof typeof PLACES

export const PLACE_NAMES = Object.keys(PLACES) as readonly PlaceName[]

/** Returns the places that hold the tasks with the given status. */
export function placesOf(status: TaskStatus): readonly PlaceName[] {
  return PLACE_NAMES.filter((name) => PLACES[name].status === status)
}

/** BullMQ stores the due time of a delayed job in the upper bits of its score, and a counter in the lower twelve. */
export const DELAYED_SCORE_STEP = 0x1000
