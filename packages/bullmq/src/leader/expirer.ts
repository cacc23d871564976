// Expires tasks that have waited longer than their queue timeout without being fetched.
import { randomUUID } from 'node:crypto'
import { endOf } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { type EndedTask, endedTasks } from '../scripts/ended-tasks.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { runUntilAnswered } from '../scripts/run-until-answered.ts'
import type { Commander } from '../scripts/script.ts'
import { expireTasksScript } from '../store/scripts.ts'

/** The maximum number of tasks that one script examines. 20 tasks take Redis about 0.6 ms. */
const PAGE_SIZE = 20

export interface Expiry {
  /** The leader's fencing number. If there is a newer leader, nothing is written. */
  readonly fencing: number
  /** Returns the time in ms since 1970. */
  readonly now: () => number
  /** The name of this process, for the attempt records. */
  readonly process: string
  /**
   * Distinguishes this process's housekeeping from other processes'. A caller must not expire the same queue's tasks twice at a
   * time.
   */
  readonly caller: string
  /** Returns whether to stop after the current page. By default, all pages are processed. */
  readonly isOver?: () => boolean
  /** Called for each expired task when Redis has confirmed the task's page. */
  readonly onExpired: (expired: EndedTask) => void
}

/**
 * Expires a queue's due tasks in pages of up to twenty, pausing after each page. Takes one round trip per page, plus a final one.
 * Pages are smaller if the waiting list is long and the due tasks are far from the end at which workers fetch. If a reply is
 * lost, the script is sent again and returns the same tasks.
 */
export async function expireTasks(redis: Commander, keys: QueueKeys, expiry: Expiry): Promise<void> {
  const { fencing, now, process, caller, onExpired, isOver = () => false } = expiry
  const names = { ...keys, endReply: keys.endReply(`${caller}:expire`) }
  const args = { base: keys.base, limit: PAGE_SIZE, fencing, ...endOf('queue_timeout', { process }) }
  for (;;) {
    const sentAt = performance.now()
    const page = await runUntilAnswered(redis, expireTasksScript, names, { ...args, now: now(), request: randomUUID() })
    if (page === null) return
    const [hasMore, ...expired] = page
    for (const each of endedTasks(expired)) onExpired(each)
    if (hasMore === 0 || isOver()) return
    await pauseAfterPage(sentAt)
  }
}
