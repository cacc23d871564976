// Reads the jobs of one status for Bull Board, which pages by position.
import type { Job, Queue } from 'bullmq'
import type { Part } from '../internals/status/status-index.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

/** A page of a queue's tasks in one of the statuses for which BullMQ has no set. */
export interface BoardPage {
  readonly queue: string
  readonly status: Part
  /** Selects the dead tasks with this fingerprint. Ignored for other statuses. */
  readonly fingerprint?: string | undefined
  /** The positions of the first and the last task of the page, starting from 0. -1 is the position of the last task of all. */
  readonly start: number
  readonly end: number
}

/**
 * Returns the jobs of one page. Tasks that have ended are in order of their ends, newest first, and the others by due time, soonest
 * first. Takes two round trips. Jobs that are deleted between the two are left out.
 */
export async function readBoardJobs(
  redis: Commander,
  { queue, keys }: { readonly queue: Queue; readonly keys: QueueKeys },
  { status, fingerprint, start, end }: BoardPage,
): Promise<readonly Job[]> {
  const set = status === 'dead' && fingerprint !== undefined ? keys.fingerprint(fingerprint) : keys[status]
  const isOpen = status === 'scheduled' || status === 'retrying'
  const ids = isOpen ? await redis.zrange(set, start, `${end}`) : await redis.zrevrange(set, start, `${end}`)
  const jobs: (Job | undefined)[] = await Promise.all(ids.map((id) => queue.getJob(id)))
  return jobs.filter((job) => job !== undefined)
}
