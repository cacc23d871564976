// Repairs the index of fingerprints after a BullMQ Queue or Worker without Bullpen's backend has used the queue. The repair also indexes
// the tasks that died before Bullpen had this index.
import type { QueueKeys } from '../../keys.ts'
import { pauseAfterPage } from '../../scripts/pause-after-page.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { findUnindexedDeadScript, indexDeadScript, pruneFingerprintScript } from '../../store/scripts.ts'
import { encodeKind, kindOfStored } from './stored-kind.ts'

/** The approximate number of tasks that one script examines. 100 tasks take Redis about 0.2 ms. */
const PAGE_SIZE = 100

/**
 * Adds the dead tasks that are missing from the index, and removes the tasks that are not dead any more. Pauses after each page, and
 * stops after the current page if `isOver` returns true. Takes one or two round trips for every 100 dead tasks, and one for every
 * 100 tasks of a fingerprint.
 */
export async function repairFingerprints(redis: Commander, keys: QueueKeys, isOver: () => boolean): Promise<void> {
  const { base, dead } = keys
  // Tasks that are not dead any more leave the index first, because they may be dead again with another fingerprint.
  for (const fingerprint of await redis.hkeys(keys.fingerprints)) {
    const names = { set: keys.fingerprint(fingerprint), dead }
    await eachPage(isOver, (cursor) =>
      runScript(redis, pruneFingerprintScript, names, { base, fingerprint, cursor, count: PAGE_SIZE }),
    )
  }
  await eachPage(isOver, async (from) => {
    const args = { base, cursor: from, count: PAGE_SIZE }
    const [cursor, tasks] = await runScript(redis, findUnindexedDeadScript, { dead }, args)
    const entries = tasks.flatMap(([id, reason, stacktrace]) => [id, encodeKind(kindOfStored({ reason, stacktrace }))])
    if (entries.length > 0) await runScript(redis, indexDeadScript, { dead }, { base }, entries)
    return cursor
  })
}

/** Calls `readPage` with each cursor, beginning with '0', until a page returns '0'. */
async function eachPage(isOver: () => boolean, readPage: (cursor: string) => Promise<string>): Promise<void> {
  for (let cursor = '0'; !isOver(); ) {
    const sentAt = performance.now()
    cursor = await readPage(cursor)
    if (cursor === '0') return
    await pauseAfterPage(sentAt)
  }
}
