// Counts the tasks of a queue.
import type { TaskStatus } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { DELAYED_SCORE_STEP, PLACE_NAMES, PLACES } from '../internals/places.ts'
import type { QueueKeys } from '../keys.ts'
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
 * KEYS: wait, prioritized, active, delayed. ARGV: the step of a delayed score (see places.ts). Returns how many tasks are in the
 * first three places, plus how many in the last one are due.
 */
const REMAINING = `
local time = redis.call('TIME')
local due = (time[1] * 1000 + math.floor(time[2] / 1000) + 1) * tonumber(ARGV[1])
return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('LLEN', KEYS[3])
  + redis.call('ZCOUNT', KEYS[4], '-inf', '(' .. string.format('%.0f', due))
`

/**
 * Counts the tasks that are waiting, active, or due by Redis's clock. A light drain of the fleet waits for them. Takes one round
 * trip.
 */
export async function countRemaining(redis: Redis, keys: QueueKeys): Promise<number> {
  const names = [keys.wait, keys.prioritized, keys.active, keys.delayed]
  return (await redis.eval(REMAINING, names.length, ...names, DELAYED_SCORE_STEP)) as number
}
