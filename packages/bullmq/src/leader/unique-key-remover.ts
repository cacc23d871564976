// Deletes the entries of a queue's unique keys that no task has any more, page by page.
//
// The pages follow Redis's own way to expire keys: each visit of the leader looks at one page, and goes on as long as at least a
// quarter of a page could be deleted. The cost of a visit is therefore bounded, and only a part of the entries are out of date.
import type { QueueKeys } from '../keys.ts'
import { removeUniqueKeysScript } from '../scripts/leader/remove-unique-keys.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../scripts/script.ts'

/** About how many entries one script looks at. */
const ENTRIES_AT_ONCE = 500
const WORTHWHILE_SHARE = 0.25

interface RemovalOptions {
  readonly fencing: number
  readonly isOver: () => boolean
}

/** Returns the duty of a leader that deletes the entries of one queue. Each call goes on where the last one has ended. */
export function createKeyRemover(redis: Commander, keys: QueueKeys) {
  let cursor = '0'
  return async ({ fencing, isOver }: RemovalOptions): Promise<void> => {
    for (;;) {
      const sentAt = performance.now()
      const args = { fencing, base: keys.base, cursor, limit: ENTRIES_AT_ONCE }
      const page = await runScript(redis, removeUniqueKeysScript, keys, args)
      if (page === undefined) return
      cursor = page.cursor
      if (cursor === '0' || page.removed < page.seen * WORTHWHILE_SHARE || isOver()) return
      await pauseAfterPage(sentAt)
    }
  }
}
