// Requeues a queue's lost tasks as soon as their locks expire.
//
// The check for lost tasks (../store/recover.ts) finds the tasks that it has marked and that have no lock. The leader checks
// once per round. If a marked task still has a lock, its worker has not renewed the lock since the check before, and may be dead.
// The leader then checks again when that lock expires. The tasks of a killed worker therefore do not wait for the next round.
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import type { Term } from '../cancel/bulk-canceller.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runnerOn } from '../scripts/script.ts'
import { type Checked, recoverLostTasks } from '../store/recover.ts'

/** How soon a lock must expire to be waited for, in ms. Locks that expire later are left to a later round. */
const HORIZON_MS = 2_000
/** The shortest wait, in ms, because the locks of one worker's tasks expire shortly after each other. */
const LEAST_WAIT_MS = 100
/** How soon a wait notices that the leader's term is over, in ms. */
const NOTICE_MS = 250

interface LostTasksOptions extends Term {
  readonly now: () => number
  /** Called after each check with the tasks that Workers hold which were not attached. */
  readonly onUnattached?: (held: Checked['unattached']) => void
}

/**
 * Checks for lost tasks, and checks again when a lock is about to expire that has not been renewed since the check before. Takes one
 * check if all workers of the queue are alive. Rejects if Redis does not respond.
 */
export async function requeueAsLocksExpire(
  redis: Commander,
  { base }: QueueKeys,
  { fencing, isOver, now, onUnattached = () => {} }: LostTasksOptions,
): Promise<void> {
  for (;;) {
    const check = { base, now, maxLosses: MAX_LOSSES, fencing, isOver }
    const { expiresInMs, unattached } = await recoverLostTasks(runnerOn(redis), check)
    onUnattached(unattached)
    if (expiresInMs === null || expiresInMs > HORIZON_MS) return
    const expiresAt = performance.now() + Math.max(expiresInMs, LEAST_WAIT_MS)
    for (let leftMs = expiresAt - performance.now(); leftMs > 0; leftMs = expiresAt - performance.now()) {
      if (isOver()) return
      await sleep(Math.min(leftMs, NOTICE_MS), undefined, { ref: false })
    }
    if (isOver()) return
  }
}
