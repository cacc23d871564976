// Counts the tasks of a queue.
import type { TaskStatus } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { DELAYED_SCORE_STEP, PLACE_NAMES, PLACES } from '../internals/places.ts'
import type { QueueKeys } from '../keys.ts'
import { remainingTasks } from '../scripts/queue/count-remaining.ts'
import { runScript } from '../scripts/script.ts'
import { readTogether } from './read-together.ts'

/** Counts the tasks in each status, as of the same moment. O(1). Takes one round trip. */
export async function countTasks(redis: Redis, keys: QueueKeys): Promise<Record<TaskStatus, number>> {
  const counts: Record<TaskStatus, number> = {
    scheduled: 0,
    waiting: 0,
    active: 0,
    retrying: 0,
    completed: 0,
    dead: 0,
    cancelled: 0,
    expired: 0,
  }
  const sizes = await readTogether(redis, (transaction) => {
    for (const place of PLACE_NAMES) {
      if (PLACES[place].type === 'list') transaction.llen(keys[place])
      else transaction.zcard(keys[place])
    }
  })
  PLACE_NAMES.forEach((place, i) => {
    counts[PLACES[place].status] += Number(sizes[i])
  })
  return counts
}

export interface Totals {
  /** How many tasks were ever added. */
  readonly accepted: number
  /** How many tasks were ever deleted. */
  readonly removed: number
}

/** Takes one round trip. O(1). */
export async function readTotals(redis: Redis, keys: QueueKeys): Promise<Totals> {
  const [accepted, removed] = await redis.hmget(keys.totals, 'accepted', 'removed')
  return { accepted: Number(accepted ?? 0), removed: Number(removed ?? 0) }
}

/**
 * Counts the tasks that are waiting, active, or due by Redis's clock. A light drain of the fleet waits for them. Takes one round
 * trip.
 */
export async function countRemaining(redis: Redis, keys: QueueKeys): Promise<number> {
  return runScript(redis, remainingTasks, keys, { scoreStep: DELAYED_SCORE_STEP })
}
