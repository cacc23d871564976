// Searches a queue's dead tasks, page by page, counts them by fingerprint or by filter, and reads and stops the requests that change
// them.
import { BullpenError, type TaskId } from '@bullpen/contract'
import { ATTEMPT_END_STATES, DEAD_TASK_ACTIONS } from '@bullpen/contract/internal'
import {
  type DeadFilter,
  type DeadMatches,
  type DeadProgress,
  type DeadQuery,
  type DeadRequest,
  type FingerprintCount,
  lowerAscii,
} from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { countFingerprints } from '../scripts/dead/count-fingerprints.ts'
import { countMatchingDead } from '../scripts/dead/count-matching-dead.ts'
import { listDeadRequests } from '../scripts/dead/list-dead-requests.ts'
import { searchDead } from '../scripts/dead/search-dead.ts'
import { stopDeadRequest } from '../scripts/dead/stop-dead-request.ts'
import type { StoredProgress } from '../scripts/dead/stored-progress.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import type { IdPage } from './listing.ts'

/** How many tasks one page examines at most. 2,000 tasks take Redis about 4 ms. */
const SCAN = 2_000

const cursorSchema = z.object({
  queue: z.string(),
  fingerprint: z.string().optional(),
  id: z.string(),
  // A caller can change a cursor, and Redis would refuse a score that is not a number.
  score: z.string().regex(/^\d{1,16}(\.\d{1,16})?$/),
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
    `the cursor does not belong to this search for dead tasks of queue '${queue}'; send the \`next\` of the previous page with the same filter, or no cursor to start again`,
  )
}

/** Returns the largest counts of dead tasks by fingerprint, the largest one first. Takes one round trip. */
export function countByFingerprint(
  redis: Commander,
  keys: QueueKeys,
  limit: number,
): Promise<readonly FingerprintCount[]> {
  const { fingerprints } = keys
  return runScript(redis, countFingerprints, { fingerprints }, { prefix: keys.fingerprint(''), limit })
}

/** How many pages a count reads at most. */
const MAX_COUNTED_PAGES = 100

/**
 * Counts the dead tasks that match a filter. Takes one round trip for every 2,000 tasks, at most 100. `call` limits how long each
 * round trip may take.
 */
export async function countMatching(
  redis: Commander,
  keys: QueueKeys,
  filter: DeadFilter,
  call: <T>(run: () => Promise<T>) => Promise<T>,
): Promise<DeadMatches> {
  const set = searchedSet(keys, filter)
  let matching = 0
  let from = { id: '', score: '' }
  for (let pages = 0; pages < MAX_COUNTED_PAGES; pages++) {
    const position = { score: from.score, last: from.id, scan: SCAN }
    const args = { ...rangeOf(keys, filter), ...position }
    const page = await call(() => runScript(redis, countMatchingDead, { set }, args))
    matching += page.matching
    if (page.last === undefined) return { matching, exact: true }
    from = page.last
  }
  return { matching, exact: false }
}

const requestSchema = z.object({
  id: z.string(),
  action: z.enum(DEAD_TASK_ACTIONS),
  filter: z.object({
    queue: z.string(),
    task: z.string().optional(),
    state: z.enum(ATTEMPT_END_STATES).optional(),
    code: z.string().optional(),
    tag: z.string().optional(),
    fingerprint: z.string().optional(),
    endedFrom: z.number().optional(),
    endedUntil: z.number().optional(),
    text: z.string().optional(),
  }),
  rate: z.number(),
  by: z.string(),
  afterCompensation: z.boolean().optional(),
  counted: z.object({ matching: z.number(), exact: z.boolean() }),
  at: z.number(),
})

/** Parses a stored request. Returns undefined if this version can't read it. */
export function parseDeadRequest(text: string | undefined): DeadRequest | undefined {
  return requestSchema.safeParse(parseJson(text)).data
}

/** Reads a request and its progress in one round trip. */
export async function readDeadProgress(
  redis: Commander,
  keys: QueueKeys,
  id: string,
): Promise<DeadProgress | undefined> {
  const fields = ['request', 'changed', 'doneAt', 'stoppedBy'] as const
  const [request, changed, doneAt, stoppedBy] = await redis.hmget(keys.deadProgress(id), ...fields)
  if (!request) return undefined
  return progressOf({
    request,
    changed: changed ?? '0',
    doneAt: doneAt ?? undefined,
    stoppedBy: stoppedBy ?? undefined,
  })
}

/** Stops a request, and returns its progress, in one round trip. */
export async function stopRequest(
  redis: Commander,
  keys: QueueKeys,
  { id, by }: { readonly id: string; readonly by: string },
): Promise<DeadProgress | undefined> {
  const stored = await runScript(redis, stopDeadRequest, { ...keys, progress: keys.deadProgress(id) }, { id, by })
  return stored && progressOf(stored)
}

/** Reads the newest requests of a queue and their progress, newest first, in one round trip. */
export async function readDeadRequests(
  redis: Commander,
  keys: QueueKeys,
  limit: number,
): Promise<readonly DeadProgress[]> {
  const { deadRequestIds } = keys
  const found = await runScript(redis, listDeadRequests, { deadRequestIds }, { prefix: keys.deadProgress(''), limit })
  return found.flatMap((stored) => progressOf(stored) ?? [])
}

function progressOf({ request: text, changed, doneAt, stoppedBy }: StoredProgress): DeadProgress | undefined {
  const request = parseDeadRequest(text)
  if (request === undefined) return undefined
  const ended = {
    doneAt: doneAt === undefined ? undefined : Number(doneAt),
    ...(stoppedBy !== undefined && { stoppedBy }),
  }
  return { request, changed: Number(changed), ...ended }
}
