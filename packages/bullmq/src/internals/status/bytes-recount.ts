// Recounts the bytes of a queue's unfinished tasks after a BullMQ Queue or Worker that is not attached has used the queue.
//
// Such a client adds tasks without charging them, and ends tasks without settling their charge (task-charge.ts). If the sum is too low,
// the queue accepts too many tasks. If the sum is too high, the queue refuses tasks for which it has room. A recount is exact if all
// unfinished tasks fit on one page.
import type { QueueKeys } from '../../keys.ts'
import { pauseAfterPage } from '../../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { type RecountPosition, recountBytesScript } from '../../scripts/status/recount-bytes.ts'

/** How many tasks one script looks at. 1,000 tasks take Redis about 0.4 ms. */
const PAGE_SIZE = 1_000
/** The difference that is left if there are several pages, because tasks move meanwhile, as a share of the sum. */
const TOLERANCE = 0.05

const BEGINNING: RecountPosition = { place: 1, passed: 0, sum: 0 }

/**
 * Compares the stored sum with the tasks, with a pause after each page, and corrects it. Stops after the current page if `isOver`
 * returns true. Returns 1 if the sum was wrong, otherwise 0. Takes a round trip for every 1,000 unfinished tasks.
 */
export async function recountBytes(
  redis: Commander,
  keys: QueueKeys,
  isOver: () => boolean,
  limit: number = PAGE_SIZE,
): Promise<number> {
  for (let at = BEGINNING; ; ) {
    const sentAt = performance.now()
    const args = { base: keys.base, ...at, limit, tolerance: TOLERANCE }
    const { corrected, next } = await runScript(redis, recountBytesScript, keys, args)
    if (next === undefined || isOver()) return corrected
    at = next
    await pauseAfterPage(sentAt)
  }
}
