// Searches a queue's dead tasks, page by page, counts them by fingerprint or by filter, and reads and stops the requests that change
// them.
import { BullpenError } from '@bullpen/contract'
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
import { type Commander, runScript } from '../scripts/script.ts'
import {
  countFingerprintsScript,
  countMatchingDeadScript,
  listDeadRequestsScript,
  searchDeadScript,
  stopDeadRequestScript,
} from '../store/scripts.ts'
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
  const [ids, id, score] = await runScript(
    redis,
    searchDeadScript,
    { set: searchedSet(keys, query) },
    { ...rangeOf(keys, query), ...position },
  )
  const next =
    id === '' ? undefined : Buffer.from(JSON.stringify({ queue, fingerprint, id, score })).toString('base64url')
  return { ids, next }
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

const infoSchema = z.object({ state: z.string(), code: z.string(), message: z.string() })

/** Returns the largest counts of dead tasks by fingerprint, the largest one first. Takes one round trip. */
export async function countByFingerprint(
  redis: Commander,
  keys: QueueKeys,
  limit: number,
): Promise<readonly FingerprintCount[]> {
  const { fingerprints } = keys
  const args = { prefix: keys.fingerprint(''), limit }
  const found = await runScript(redis, countFingerprintsScript, { fingerprints }, args)
  return found.map(([fingerprint, info, count, oldestAt, newestAt, newestId]) => {
    const described = infoSchema.safeParse(parseJson(info)).data ?? { state: '', code: '', message: '' }
    return {
      fingerprint,
      ...described,
      count,
      oldestAt: Number(oldestAt),
      newestAt: Number(newestAt),
      newestId,
    }
  })
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
    const [found, id, score] = await call(() => runScript(redis, countMatchingDeadScript, { set }, args))
    matching += found
    if (id === '') return { matching, exact: true }
    from = { id, score }
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

/** How long the progress of a request that is done is kept, in ms. Commands to the fleet are kept for the same time. */
export const KEEP_PROGRESS_MS = 604_800_000

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
  return request ? progressOf([request, changed ?? '0', doneAt ?? '', stoppedBy ?? '']) : undefined
}

/** Stops a request, and returns its progress, in one round trip. */
export async function stopRequest(
  redis: Commander,
  keys: QueueKeys,
  { id, by }: { readonly id: string; readonly by: string },
): Promise<DeadProgress | undefined> {
  const names = { ...keys, progress: keys.deadProgress(id) }
  const stored = await runScript(redis, stopDeadRequestScript, names, { id, by, keepMs: KEEP_PROGRESS_MS })
  return stored === null ? undefined : progressOf(stored)
}

/** Reads the newest requests of a queue and their progress, newest first, in one round trip. */
export async function readDeadRequests(
  redis: Commander,
  keys: QueueKeys,
  limit: number,
): Promise<readonly DeadProgress[]> {
  const { deadRequestIds } = keys
  const args = { prefix: keys.deadProgress(''), limit }
  const found = await runScript(redis, listDeadRequestsScript, { deadRequestIds }, args)
  return found.flatMap((stored) => progressOf(stored) ?? [])
}

/** The progress of a request as scripts return it, with '' for a missing time or name. */
type StoredProgress = [request: string, changed: string, doneAt: string, stoppedBy: string]

function progressOf([text, changed, doneAt, stoppedBy]: StoredProgress): DeadProgress | undefined {
  const request = parseDeadRequest(text)
  if (request === undefined) return undefined
  const end = { doneAt: doneAt === '' ? undefined : Number(doneAt), ...(stoppedBy !== '' && { stoppedBy }) }
  return { request, changed: Number(changed), ...end }
}
