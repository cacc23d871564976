// Recounts the bytes of a queue's unfinished tasks, and each API key's unfinished tasks, after a BullMQ Queue or Worker without Bullpen's
// backend has used the queue.
//
// A client without this backend adds tasks without charging for them, and ends tasks without refunding their charge
// (../../store/lua/includes/task/task-charge.lua). If a sum is then too low, the queue accepts too many tasks. If the sum is too high, the
// queue refuses tasks for which it has room.
//
// A count takes several pages if there are many tasks, and tasks move meanwhile. Each page therefore also reads BullMQ's events since
// the previous page, and the state of the tasks that they concern (read-unfinished.lua). Bullpen's scripts only add these events if
// somebody asks for them (../../store/backend-events.ts), so a count whose first page is not the last one asks and begins again. At the
// last page, the count is exact, and so is the difference between the stored sums and the tasks. Bullpen's own scripts change both by
// the same amount, so the difference does not change until it is corrected.
//
// A few of BullMQ's operations do not add an event for each job: `drain`, `clean`, `obliterate`, `removeOrphanedJobs`,
// `changePriority`, `updateData`, and changes of a job scheduler. If one of them runs during a count, the count may be wrong. A
// difference is therefore corrected only if a second count finds it as well, and only as far as both counts agree. If such a client
// keeps increasing a difference, each recount corrects what had accumulated before its first count.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'
import type { QueueKeys } from '../../keys.ts'
import { pairsOf } from '../../scripts/pairs.ts'
import { pauseAfterPage } from '../../scripts/pause-after-page.ts'
import { type Commander, runnerOn, runScript } from '../../scripts/script.ts'
import { askForAllEvents } from '../../store/backend-events.ts'
import { correctSumsScript, readUnfinishedScript } from '../../store/scripts.ts'
import { commonDifference, createUnfinishedTasks, differenceOf, isRight, type Sums } from './unfinished-tasks.ts'

/** The maximum number of tasks that one script reads. 1,000 tasks take Redis about 2 ms. */
const PAGE_SIZE = 1_000
/** How often a count is started again if the event stream has lost events, before the recount is given up until the next one. */
const MAX_TRIES = 3
/** The number of pages in a row without progress after which a count is started again. Such pages only read events. */
const MAX_PAGES_BEHIND = 100

/** The position that a count has reached, as read-unfinished.lua describes it. */
const BEGINNING = { place: 1, lane: '-inf', passed: 0, lastEvent: '' }

/**
 * Compares the stored sums with the tasks, pausing after each page, and corrects the sums that are wrong. Stops after the current
 * page if `isOver` returns true. Returns 1 if a sum was wrong and has been corrected, and otherwise 0. Takes one round trip for every
 * 1,000 unfinished tasks, and three times as many if a sum is wrong.
 */
export async function recountBytes(
  redis: Commander,
  keys: QueueKeys,
  isOver: () => boolean,
  limit: number = PAGE_SIZE,
): Promise<number> {
  const recount = createRecount(redis, keys, limit)
  for (;;) {
    const sentAt = performance.now()
    const corrected = await recount()
    if (corrected !== undefined || isOver()) return corrected ?? 0
    await pauseAfterPage(sentAt)
  }
}

/**
 * Returns a function that performs the next step of a recount: it reads a page, or corrects the sums. The function returns undefined
 * until the recount is done, and then 1 if a sum has been corrected, or 0.
 */
export function createRecount(redis: Commander, keys: QueueKeys, limit: number): () => Promise<number | undefined> {
  let count = createCount(redis, keys, limit)
  let first: Sums | undefined
  let tries = 1

  return async () => {
    const found = await count()
    if (found === undefined) return undefined
    count = createCount(redis, keys, limit)
    if (found === 'lost') return tries++ < MAX_TRIES ? undefined : 0
    const difference = first === undefined ? found.difference : commonDifference(first, found.difference)
    if (isRight(difference)) return 0
    if (first !== undefined) return correct(redis, keys, difference, found.drift)
    first = difference
    return undefined
  }
}

interface Found {
  /** By how much the stored sums exceed the counted ones. */
  readonly difference: Sums
  /** The number of repairs so far. */
  readonly drift: number
}

/** Returns a function that reads the next page. It returns the result at the last page, and `lost` if the count must be repeated. */
function createCount(redis: Commander, keys: QueueKeys, limit: number): () => Promise<Found | 'lost' | undefined> {
  const tasks = createUnfinishedTasks()
  let at = BEGINNING
  let farthest = BEGINNING
  let behind = 0
  const ask = askForAllEvents(runnerOn(redis), keys.meta)
  let hasAsked = false
  return async () => {
    if (hasAsked && !(await ask())) return 'lost'
    const args = { base: keys.base, ...at, limit, overhead: TASK_OVERHEAD_BYTES, mark: '+' }
    const page = await runScript(redis, readUnfinishedScript, keys, args)
    if (page === null) return 'lost'
    const [place, lane, passed, lastEvent, read, bytes, drift, ofApiKeys] = page
    if (!hasAsked && ofApiKeys === undefined) {
      hasAsked = true
      return undefined
    }
    for (let i = 0; i + 2 < read.length; i += 3) tasks.set(String(read[i]), Number(read[i + 1]), String(read[i + 2]))
    if (ofApiKeys !== undefined) {
      const stored = { bytes: Number(bytes), ofApiKeys: countsOf(ofApiKeys) }
      return { difference: differenceOf(stored, tasks.sums()), drift: Number(drift) }
    }
    at = { place, lane, passed, lastEvent }
    const hasAdvanced = at.place > farthest.place || (at.place === farthest.place && at.passed > farthest.passed)
    if (hasAdvanced) farthest = at
    behind = hasAdvanced ? 0 : behind + 1
    return behind < MAX_PAGES_BEHIND ? undefined : 'lost'
  }
}

/** Decodes the fields of a hash of numbers, which alternate with their values. */
function countsOf(fields: readonly string[]): ReadonlyMap<string, number> {
  return new Map(pairsOf(fields).map(([name, count]) => [name, Number(count)]))
}

function correct(redis: Commander, keys: QueueKeys, { bytes, ofApiKeys }: Sums, drift: number): Promise<number> {
  const counts = [...ofApiKeys].flatMap(([name, difference]) => [name, -difference])
  return runScript(redis, correctSumsScript, keys, { drift, bytes: -bytes }, counts)
}
