// Expires tasks that have waited longer than their queue timeout without being fetched.
import type { TaskId } from '@bullpen/contract'

import type { QueueKeys } from '../keys.ts'
import { endOf } from '../scripts/includes/end-without-run.ts'
import { expireTasksScript } from '../scripts/leader/expire-tasks.ts'
import { type Commander, runScript } from '../scripts/script.ts'

/** How many tasks one script looks at. The oldest tasks are at the near end of the list, where removing them is cheap. */
const PAGE_SIZE = 20

export interface Expired {
  readonly id: TaskId
  readonly task: string
}

export interface Expiry {
  /** The leader's fencing number. If there is a newer leader, nothing is written. */
  readonly fencing: number
  /** In ms since 1970. */
  readonly now: number
  /** The name of this process, for the attempt records. */
  readonly process: string
}

/** Expires a queue's tasks. Takes one round trip for every twenty tasks that are due, and one more. */
export async function expireTasks(redis: Commander, keys: QueueKeys, expiry: Expiry): Promise<Expired[]> {
  const { fencing, now, process } = expiry
  const args = { base: keys.base, now, limit: PAGE_SIZE, fencing, ...endOf('queue_timeout', { process }) }
  const expired: Expired[] = []
  for (;;) {
    const page = await runScript(redis, expireTasksScript, keys, args)
    if (page === undefined) return expired
    expired.push(...page.expired)
    if (page.looked < PAGE_SIZE) return expired
  }
}
