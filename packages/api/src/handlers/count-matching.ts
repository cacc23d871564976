// Counts the tasks that a cancel by filter would match. The number of tasks that are read is bounded.
import type { TaskStatus } from '@bullpen/contract'
import { PAGINATION } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { type CancelFilter, matches } from '@bullpen/engine/internal'

/** The statuses in which a cancellation can end a task. */
const OPEN_STATUSES = ['active', 'waiting', 'scheduled', 'retrying'] as const satisfies readonly TaskStatus[]

/** A page contains up to 200 tasks with their inputs, so this limit bounds memory use and the load on Redis. */
const MAX_PAGES_PER_STATUS = 10

export interface MatchCount {
  readonly matching: number
  /** False if there are more tasks than were read, in which case `matching` is a lower bound. */
  readonly exact: boolean
}

export async function countMatching(broker: Broker, filter: CancelFilter): Promise<MatchCount> {
  let matching = 0
  let exact = true
  for (const status of OPEN_STATUSES) {
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await broker.list({ queue: filter.queue, status, limit: PAGINATION.max, cursor })
      matching += page.tasks.filter((task) => matches(filter, task)).length
      cursor = page.next
      pages++
    } while (cursor !== undefined && pages < MAX_PAGES_PER_STATUS)
    if (cursor !== undefined) exact = false
  }
  return { matching, exact }
}
