// Returns the tasks that have lost their worker to their queue. The leader does so for every queue, so that Bullpen's own Workers do not
// need their own check (`skipStalledCheck`). A team's own Worker does so as often as its options say (./backend.ts).
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import { recoverScript } from './scripts.ts'

interface Check {
  /** The prefix of the queue's keys. */
  readonly base: string
  /** Returns the time in ms since 1970. By default, the script reads Redis's clock. */
  readonly now?: () => number
  /** How often a task may lose its worker. After one more loss, the next worker fails the task. */
  readonly maxLosses: number
  /** The leader's fencing number. If there is a newer leader, nothing is written. A Worker has none. */
  readonly fencing?: number
  /** For how long no other Worker checks, in ms. If another one has checked, nothing is written. The leader always checks. */
  readonly checkMs?: number
  /** Returns whether to stop after the current page. By default, all pages are processed. */
  readonly isOver?: () => boolean
}

export interface Checked {
  /** The tasks that have returned to the queue. */
  readonly ids: string[]
  /**
   * In how many ms the first lock of the marked tasks expires: a lock that has not been renewed since the check before. Null if there is no
   * such lock.
   */
  readonly expiresInMs: number | null
  /**
   * For the leader: the tasks that Workers hold which were not attached, and which have not renewed the lock since the check before. Each
   * with the name that is stored as that of its Worker, or ''.
   */
  readonly unattached: ReadonlyMap<string, string>
}

const START = '0 0'

/**
 * Requeues lost tasks, which takes two checks. The first check marks the active tasks, and renewing a task's lock removes its
 * mark. The second check returns the tasks that are still marked and have no lock to the head of their queue, and stores the
 * record of each lost attempt. A task that has lost its worker more than `maxLosses` times is flagged so that the next worker
 * fails it. Takes one round trip for every 1,000 active tasks, and one for every 50 lost ones, with a pause after each.
 */
export async function recoverLostTasks(run: ScriptRunner, check: Check): Promise<Checked> {
  const { base, now, maxLosses, fencing = '', isOver = () => false } = check
  const ids: string[] = []
  const unattached = new Map<string, string>()
  let soonest: number | null = null
  let position = START
  for (let checkMs = check.checkMs ?? ''; ; checkMs = '') {
    const sentAt = performance.now()
    const args = { base, now: now?.() ?? '', maxLosses, fencing, checkMs, position }
    const [next, expiresInMs, held, ...returned] = await run(recoverScript, { unrenewed: `${base}unrenewed` }, args)
    ids.push(...returned)
    for (let i = 0; i + 1 < held.length; i += 2) unattached.set(held[i] ?? '', held[i + 1] ?? '')
    if (expiresInMs !== null) soonest = Math.min(soonest ?? expiresInMs, expiresInMs)
    if (next === '' || isOver()) return { ids, expiresInMs: soonest, unattached }
    position = next
    await pauseAfterPage(sentAt)
  }
}
