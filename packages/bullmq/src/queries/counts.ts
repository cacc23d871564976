// Counts a queue's tasks, and finds out how many of its accepted tasks are unaccounted for.
import { isFinal, type TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import type { QueueTotals } from '@bullpen/engine'
import { DELAYED_SCORE_STEP, PLACE_NAMES, PLACES } from '../internals/status/places.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { countRemainingScript } from '../store/scripts.ts'
import { type Reads, readTogether } from './read-together.ts'

/** Counts the tasks in each status, all as of the same moment. Takes constant time and one round trip. */
export async function countTasks(redis: Commander, keys: QueueKeys): Promise<Record<TaskStatus, number>> {
  return countsOf(await readTogether(redis, (reads) => addSizes(reads, keys)))
}

/** Reads a queue's totals, all as of the same moment. Takes constant time and one round trip. */
export async function readTotals(redis: Commander, keys: QueueKeys): Promise<QueueTotals> {
  const answers = await readTogether(redis, (reads) => {
    reads.hmget(keys.totals, 'accepted', 'removed', 'retried', 'recovered', 'drift', 'bytes')
    reads.xlen(keys.outbox).firstEntry(keys.outbox)
    addSizes(reads, keys)
  })
  const [totals, entries, oldest, ...sizes] = answers
  const [accepted = 0, removed = 0, retried = 0, recovered = 0, drift = 0, bytes = 0] = (
    totals as (string | null)[]
  ).map((total) => Number(total ?? 0))
  const counts = countsOf(sizes)
  const sumOf = (statuses: readonly TaskStatus[]) => statuses.reduce((sum, status) => sum + counts[status], 0)
  const ended = accepted + retried - sumOf(TASK_STATUSES.filter((status) => !isFinal(status)))
  const outbox = { entries: Number(entries), oldestAt: timeOf(oldest) }
  const unaccounted = accepted - removed - sumOf(TASK_STATUSES)
  return { bytes, accepted, removed, ended, recovered, drift, unaccounted, outbox }
}

/** Returns the time of the first entry of a stream, in ms since 1970, or undefined if there is none. */
function timeOf(entries: unknown): number | undefined {
  const [first] = entries as readonly (readonly [id: string])[]
  return first && Number.parseInt(first[0], 10)
}

function addSizes(reads: Reads, keys: QueueKeys): void {
  for (const place of PLACE_NAMES) {
    if (PLACES[place].type === 'list') reads.llen(keys[place])
    else if (PLACES[place].type === 'lanes') reads.hget(keys.turnState, 'waiting')
    else reads.zcard(keys[place])
  }
}

function countsOf(sizes: readonly unknown[]): Record<TaskStatus, number> {
  const counts = Object.fromEntries(TASK_STATUSES.map((status) => [status, 0])) as Record<TaskStatus, number>
  PLACE_NAMES.forEach((place, i) => {
    counts[PLACES[place].status] += Number(sizes[i] ?? 0)
  })
  return counts
}

/**
 * Counts the tasks that are waiting, active, or due by Redis's clock, the quarantined tasks that wait for a place, and the entries of
 * the outbox. A light drain of the fleet waits for all of them. Takes one round trip.
 */
export async function countRemaining(redis: Commander, keys: QueueKeys): Promise<number> {
  return runScript(redis, countRemainingScript, keys, { scoreStep: DELAYED_SCORE_STEP })
}
