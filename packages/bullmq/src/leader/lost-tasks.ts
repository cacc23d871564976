// Requeues a queue's lost tasks as soon as their locks expire.
//
// The check for lost tasks (internals/stalled-check.ts) finds the tasks that it has marked and that have no lock. The leader checks
// once per round. If a marked task still has a lock, its worker has not renewed the lock since the check before, and may be dead.
// The leader then checks again when that lock expires. The tasks of a killed worker therefore do not wait for the next round.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Term } from '../cancel/bulk-canceller.ts'
import { requeueLostTasks } from '../internals/stalled-check.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { soonestLockExpiryScript } from '../store/scripts.ts'

/** How soon a lock must expire to be waited for, in ms. Locks that expire later are left to a later round. */
const HORIZON_MS = 2_000
/** The shortest wait, in ms, because the locks of one worker's tasks expire shortly after each other. */
const LEAST_WAIT_MS = 100
/** How soon a wait notices that the leader's term is over, in ms. */
const NOTICE_MS = 250

/**
 * Checks for lost tasks, and checks again when a lock is about to expire that has not been renewed since the check before. Takes two
 * round trips per check, and one check if all workers of the queue are alive. Rejects if Redis does not respond.
 */
export async function requeueAsLocksExpire(
  redis: Commander,
  keys: QueueKeys,
  { fencing, isOver, now }: Term & { readonly now: () => number },
): Promise<void> {
  for (;;) {
    const expiresInMs = await runScript(redis, soonestLockExpiryScript, keys, { base: keys.base })
    await requeueLostTasks(redis, keys, { fencing, now: now() })
    if (expiresInMs === null || expiresInMs > HORIZON_MS) return
    const expiresAt = performance.now() + Math.max(expiresInMs, LEAST_WAIT_MS)
    for (let leftMs = expiresAt - performance.now(); leftMs > 0; leftMs = expiresAt - performance.now()) {
      if (isOver()) return
      await sleep(Math.min(leftMs, NOTICE_MS), undefined, { ref: false })
    }
    if (isOver()) return
  }
}
