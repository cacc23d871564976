// Counts the tasks of a queue that have ended lately.
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { readTogether } from './read-together.ts'

export interface EndCounts {
  readonly dead: number
  readonly completed: number
  /** How many of the dead tasks have each fingerprint, in the order of the fingerprints. */
  readonly ofFingerprints: readonly number[]
}

/**
 * Counts the tasks that died or completed after `since`, in ms since 1970, and that are still kept, all as of the same moment. Takes one
 * round trip, and logarithmic time for each fingerprint.
 */
export async function countRecentEnds(
  redis: Commander,
  keys: QueueKeys,
  since: number,
  fingerprints: readonly string[],
): Promise<EndCounts> {
  const [dead = 0, completed = 0, ...ofFingerprints] = (await readTogether(redis, (reads) => {
    reads.zcountAbove(keys.dead, since).zcountAbove(keys.completed, since)
    for (const fingerprint of fingerprints) reads.zcountAbove(keys.fingerprint(fingerprint), since)
  })) as number[]
  return { dead, completed, ofFingerprints }
}
