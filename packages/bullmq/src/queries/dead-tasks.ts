// Searches a queue's dead tasks, page by page, and counts them by fingerprint.
import { BullpenError, type TaskId } from '@bullpen/contract'
import { type DeadFilter, type DeadQuery, type FingerprintCount, lowerAscii } from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { countFingerprints } from '../scripts/dead/count-fingerprints.ts'
import { searchDead } from '../scripts/dead/search-dead.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import type { IdPage } from './listing.ts'

/** How many tasks one page examines at most. 2,000 tasks take Redis about 4 ms. */
const SCAN = 2_000

const cursorSchema = z.object({
  queue: z.string(),
  fingerprint: z.string().optional(),
  id: z.string(),
  score: z.string(),
})

/**
 * Returns the ids of one page, newest first. Takes one round trip. The page is not full if it has examined {@link SCAN} tasks.
 *
 * @throws BullpenError `invalid_cursor`.
 */
export async function findDead(redis: Commander, keys: QueueKeys, query: DeadQuery): Promise<IdPage> {
  const { queue, fingerprint, limit, cursor } = query
  const from = cursor === undefined ? { id: '', score: '' } : decodeCursor(query, cursor)
  const position = { score: from.score, last: from.id, limit, scan: SCAN }
  const { ids, last } = await runScript(
    redis,
    searchDead,
    { set: searchedSet(keys, query) },
    { ...rangeOf(keys, query), ...position },
  )
  const next = last && Buffer.from(JSON.stringify({ queue, fingerprint, ...last })).toString('base64url')
  return { ids: ids as readonly TaskId[], next }
}

/** Returns the set that contains all tasks that the filter may match. */
export function searchedSet(keys: QueueKeys, { fingerprint }: DeadFilter): string {
  return fingerprint === undefined ? keys.dead : keys.fingerprint(fingerprint)
}

/** Returns the arguments with which scripts select the tasks of the searched set. */
export function rangeOf(keys: QueueKeys, { task, state, code, tag, text, endedFrom, endedUntil }: DeadFilter) {
  const filter = { task, state, code, tag, ...(text !== undefined && { text: lowerAscii(text) }) }
  return {
    base: keys.base,
    filterText: JSON.stringify(filter),
    earliest: endedFrom ?? '-inf',
    latest: endedUntil ?? '+inf',
  }
}

function decodeCursor({ queue, fingerprint }: DeadQuery, cursor: string): z.infer<typeof cursorSchema> {
  const parsed = cursorSchema.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (parsed.success && parsed.data.queue === queue && parsed.data.fingerprint === fingerprint) return parsed.data
  throw new BullpenError(
    'invalid_cursor',
    `the cursor does not belong to this search for dead tasks of queue '${queue}'`,
  )
}

/** Counts the dead tasks by fingerprint, the largest count first. Takes one round trip. */
export async function countByFingerprint(redis: Commander, keys: QueueKeys): Promise<readonly FingerprintCount[]> {
  const { fingerprints } = keys
  const counts = await runScript(redis, countFingerprints, { fingerprints }, { prefix: keys.fingerprint('') })
  return counts.toSorted((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1))
}
