// The places of a queue: the BullMQ structures that can hold a job, and the statuses of the tasks in each of them.
import type { TaskStatus } from '@bullpen/contract'

interface Place {
  readonly type: 'list' | 'sorted set'
  /** The possible statuses of its tasks. If there are several, the last attempt record shows which one applies. */
  readonly statuses: readonly TaskStatus[]
}

/** A job is in one place at a time. */
export const PLACES = {
  wait: { type: 'list', statuses: ['waiting'] },
  prioritized: { type: 'sorted set', statuses: ['waiting'] },
  delayed: { type: 'sorted set', statuses: ['scheduled', 'retrying'] },
  active: { type: 'list', statuses: ['active'] },
  completed: { type: 'sorted set', statuses: ['completed'] },
  failed: { type: 'sorted set', statuses: ['dead', 'cancelled', 'expired'] },
} as const satisfies Record<string, Place>

export type PlaceName = keyof typeof PLACES

const NAMES = Object.keys(PLACES) as readonly PlaceName[]

/** Returns the places that hold tasks with the given status. */
export function placesOf(status: TaskStatus): readonly PlaceName[] {
  return NAMES.filter((name) => (PLACES[name].statuses as readonly TaskStatus[]).includes(status))
}

/** BullMQ stores the due time of a delayed job in the upper bits of its score, and a counter in the lower twelve. */
export const DELAYED_SCORE_STEP = 0x1000

/**
 * A Lua function for the scripts that end a waiting task: `take_out(id, wait, prioritized, delayed)` removes the task from the
 * place where it waits, and returns whether it was in one. The arguments after the id are keys.
 *
 * LREM starts at the right end of the list, where the oldest tasks are. Removing a task from the far end of a list of 200,000
 * costs Redis 2.6 ms.
 */
export const TAKE_OUT = `
local function take_out(id, wait, prioritized, delayed)
  return redis.call('LREM', wait, -1, id) == 1
    or redis.call('ZREM', prioritized, id) == 1
    or redis.call('ZREM', delayed, id) == 1
end
`
