// Reads the jobs of one status for Bull Board, which pages by position.
import type { Job, Queue } from 'bullmq'
import type { Part } from '../internals/status/status-index.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { type LanePosition, readLanesPage } from './lanes-page.ts'

/** A page of a queue's tasks in a place that BullMQ does not know: in one of the statuses for which it has no set, or in lanes. */
export interface BoardPage {
  readonly queue: string
  /** `in lanes`: the waiting tasks of a fair queue, except for those without a concurrency key. */
  readonly status: Part | 'in lanes'
  /** Selects the dead tasks with this fingerprint. Ignored for other statuses. */
  readonly fingerprint?: string | undefined
  /** The positions of the first and the last task of the page, starting from 0. -1 is the position of the last task of all. */
  readonly start: number
  readonly end: number
}

/** How many ids one script reads of the lanes. */
const LANES_PAGE = 1_000

/**
 * Returns the jobs of one page. Tasks that have ended are in order of their ends, newest first, those in lanes in the order of their
 * lanes, and the others by due time, soonest first. Takes two round trips, and for a page of the lanes another one for every 1,000 tasks
 * before it. Jobs that are deleted between the round trips are left out.
 */
export async function readBoardJobs(
  redis: Commander,
  { queue, keys }: { readonly queue: Queue; readonly keys: QueueKeys },
  page: BoardPage,
): Promise<readonly Job[]> {
  const ids = await readIds(redis, keys, page)
  const jobs: (Job | undefined)[] = await Promise.all(ids.map((id) => queue.getJob(id)))
  return jobs.filter((job) => job !== undefined)
}

function readIds(
  redis: Commander,
  keys: QueueKeys,
  { status, fingerprint, start, end }: BoardPage,
): Promise<readonly string[]> {
  if (status === 'in lanes') return readLanes(redis, keys, start, end)
  const set = status === 'dead' && fingerprint !== undefined ? keys.fingerprint(fingerprint) : keys[status]
  const isOpen = status === 'scheduled' || status === 'retrying'
  return isOpen ? redis.zrange(set, start, `${end}`) : redis.zrevrange(set, start, `${end}`)
}

/** The lanes can only be read from the beginning. */
async function readLanes(redis: Commander, keys: QueueKeys, start: number, end: number): Promise<readonly string[]> {
  const found: string[] = []
  const wanted = end < 0 ? Number.POSITIVE_INFINITY : end + 1
  let at: LanePosition | undefined
  for (let passed = 0; passed < wanted; ) {
    const limit = Math.min(LANES_PAGE, wanted - passed)
    const page = await readLanesPage(redis, keys, at, limit)
    found.push(...page.ids.slice(Math.max(0, start - passed)))
    passed += page.ids.length
    at = page.at
    if (page.ids.length < limit) break
  }
  return found
}
