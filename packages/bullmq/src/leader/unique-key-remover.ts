// Deletes the entries of unique keys that no task of the queue has any more, page by page.
//
// The method is the one by which Redis expires its own keys. Each time the leader visits the queue, it examines one page of
// entries, and continues with the next page only if at least a quarter of the entries were deleted. A visit therefore takes more
// than one page only if many entries are outdated.
import type { QueueKeys } from '../keys.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { removeUniqueKeysScript } from '../store/scripts.ts'

/** The approximate number of entries that one script examines. */
const ENTRIES_AT_ONCE = 500
const WORTHWHILE_SHARE = 0.25

interface RemovalOptions {
  readonly fencing: number
  readonly isOver: () => boolean
}

/** Returns the leader's duty of deleting one queue's outdated entries. Each call continues where the previous one ended. */
export function createKeyRemover(redis: Commander, keys: QueueKeys) {
  let cursor = '0'
  return async ({ fencing, isOver }: RemovalOptions): Promise<void> => {
    for (;;) {
      const sentAt = performance.now()
      const args = { fencing, base: keys.base, cursor, limit: ENTRIES_AT_ONCE }
      const page = await runScript(redis, removeUniqueKeysScript, keys, args)
      if (page === null) return
      const [next, seen, removed] = page
      cursor = next
      if (cursor === '0' || removed < seen * WORTHWHILE_SHARE || isOver()) return
      await pauseAfterPage(sentAt)
    }
  }
}
