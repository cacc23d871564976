// Counts the tasks of a queue.
import type { TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import type { QueueTotals } from '@bullpen/engine'
import type { ChainableCommander } from 'ioredis'
import { DELAYED_SCORE_STEP, PLACE_NAMES, PLACES } from '../internals/places.ts'
import type { QueueKeys } from '../keys.ts'
import { remainingTasks } from '../scripts/queue/count-remaining.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readTogether } from './read-together.ts'

/** Counts the tasks in each status, as of the same moment. O(1). Takes one round trip. */
export async function countTasks(redis: Commander, keys: QueueKeys): Promise<Record<TaskStatus, number>> {
  return countsOf(await readTogether(redis, (transaction) => addSizes(transaction, keys)))
}

/** Reads the totals of a queue, as of the same moment. O(1). Takes one round trip. */
export async function readTotals(redis: Commander, keys: QueueKeys): Promise<QueueTotals> {
  const answers = await readTogether(redis, (transaction) => {
    transaction.hmget(keys.totals, 'accepted', 'removed', 'drift')
    addSizes(transaction, keys)
  })
  const [totals, ...sizes] = answers
  const [accepted = 0, removed = 0, drift = 0] = (totals as (string | null)[]).map((total) => Number(total ?? 0))
  const tasks = Object.values(countsOf(sizes)).reduce((sum, count) => sum + count, 0)
  return { accepted, removed, drift, unaccounted: accepted - removed - tasks }
}

function addSizes(transaction: ChainableCommander, keys: QueueKeys): void {
  for (const place of PLACE_NAMES) {
    if (PLACES[place].type === 'list') transaction.llen(keys[place])
    else transaction.zcard(keys[place])
  }
}

function countsOf(sizes: readonly unknown[]): Record<TaskStatus, number> {
  const counts = Object.fromEntries(TASK_STATUSES.map((status) => [status, 0])) as Record<TaskStatus, number>
  PLACE_NAMES.forEach((place, i) => {
    counts[PLACES[place].status] += Number(sizes[i])
  })
  return counts
}

/**
 * Counts the tasks that are waiting, active, or due by Redis's clock. A light drain of the fleet waits for them. Takes one round
 * trip.
 */
export async function countRemaining(redis: Commander, keys: QueueKeys): Promise<number> {
  return runScript(redis, remainingTasks, keys, { scoreStep: DELAYED_SCORE_STEP })
}
