// Lists a queue's tasks with a given status, page by page: tasks that have not ended in the order of the places that hold them, and
// ended tasks from the newest to the oldest.
import { BullpenError, isFinal, type TaskId } from '@bullpen/contract'
import type { ListQuery } from '@bullpen/engine'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import { PLACES, type PlaceName, placesOf } from '../internals/status/places.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { listPageScript, sortedSetPageScript } from '../store/scripts.ts'
import { readLanesPage } from './lanes-page.ts'

/**
 * Where a listing continues: after the last task shown. In a sorted set, the position includes that task's score. In a list, the
 * position includes the number of tasks from the right end up to and including that task. Without a position, the listing
 * continues at the start of the place.
 */
const positionSchema = z.union([
  z.object({ lane: z.number(), last: z.string(), score: z.number().optional(), passed: z.int().optional() }),
  z.object({ last: z.string(), score: z.number() }),
  z.object({ last: z.string(), passed: z.int().nonnegative() }),
])

type Position = z.infer<typeof positionSchema>

const cursorSchema = z.object({
  queue: z.string(),
  status: z.string(),
  /** The index of the place among the places that hold the status. */
  place: z.int().nonnegative(),
  at: positionSchema.optional(),
})

type Cursor = Pick<z.infer<typeof cursorSchema>, 'place' | 'at'>

export interface IdPage {
  readonly ids: readonly TaskId[]
  readonly next: string | undefined
}

interface PlacePage {
  readonly ids: readonly string[]
  readonly next: Position | undefined
}

/**
 * Returns the ids of one page, which is full unless it is the last. Takes one round trip for each place of the status. A page
 * costs Redis the same at any depth, except in a list that has changed at its right end since the previous page (list-page.lua).
 * Every task that stays in its place is listed, whatever happens to other tasks between two pages. It is listed only once, unless
 * the last task shown was cancelled and the place is a list.
 *
 * @throws BullpenError `invalid_cursor`.
 */
export async function listIds(redis: Commander, keys: QueueKeys, query: ListQuery): Promise<IdPage> {
  const places = placesOf(query.status)
  let cursor: Cursor = query.cursor === undefined ? { place: 0 } : decodeCursor(query)
  const ids: string[] = []
  for (; cursor.place < places.length && ids.length < query.limit; cursor = { place: cursor.place + 1 }) {
    const name = places[cursor.place] as PlaceName
    const [limit, descends] = [query.limit - ids.length, isFinal(query.status)]
    const page = await readPage(redis, keys, name, { limit, position: cursor.at, descends })
    ids.push(...page.ids)
    if (page.next !== undefined)
      return { ids: ids as TaskId[], next: encodeCursor(query, { ...cursor, at: page.next }) }
  }
  const next = cursor.place < places.length ? encodeCursor(query, cursor) : undefined
  return { ids: ids as TaskId[], next }
}

interface PageRequest {
  readonly limit: number
  readonly position: Position | undefined
  readonly descends: boolean
}

function readPage(redis: Commander, keys: QueueKeys, name: PlaceName, request: PageRequest): Promise<PlacePage> {
  const { limit, position } = request
  const { type } = PLACES[name]
  if (type === 'list') return readListPage(redis, keys[name], limit, position)
  return type === 'lanes' ? readLanes(redis, keys, limit, position) : readSortedSetPage(redis, keys[name], request)
}

/** Reads one page of the lanes, one lane after the other. New lanes come last, so no lane that has tasks is skipped. */
async function readLanes(
  redis: Commander,
  keys: QueueKeys,
  limit: number,
  position: Position | undefined,
): Promise<PlacePage> {
  const from = position !== undefined && 'lane' in position ? position : undefined
  const { ids, at } = await readLanesPage(redis, keys, from, limit)
  return { ids, next: ids.length < limit ? undefined : at }
}

/**
 * Reads one page of a list. BullMQ takes jobs from the right end of a list. A listing starts there, with the next task to run,
 * and each page continues to the left of the last task shown. If that task has since been taken, so have all tasks to its right,
 * and the listing continues at the right end. A task that keeps waiting is therefore never skipped.
 */
async function readListPage(
  redis: Commander,
  list: string,
  limit: number,
  position: Position | undefined,
): Promise<PlacePage> {
  const at =
    position !== undefined && 'passed' in position && !('lane' in position) ? position : { last: '', passed: 0 }
  // One task more than the page shows whether another page follows.
  const args = { last: at.last, passedBefore: at.passed, limit: limit + 1 }
  const [passed, found] = await runScript(redis, listPageScript, { list }, args)
  const ids = found.toReversed().slice(0, limit)
  const last = ids.at(-1)
  const hasMore = found.length > limit && last !== undefined
  return { ids, next: hasMore ? { last, passed: passed + ids.length } : undefined }
}

/**
 * Reads one page of a sorted set, which continues after the last task shown, in the order of the scores and the ids, or in the reverse
 * order if `descends` is true.
 */
async function readSortedSetPage(
  redis: Commander,
  set: string,
  { limit, position, descends }: PageRequest,
): Promise<PlacePage> {
  const at = position !== undefined && 'score' in position && !('lane' in position) ? position : { last: '', score: '' }
  const args = { ...at, limit: limit + 1, descends: descends ? 1 : 0 }
  const found = await runScript(redis, sortedSetPageScript, { set }, args)
  const page = found.slice(0, limit)
  const [last, score] = page.at(-1) ?? []
  const hasMore = found.length > limit && last !== undefined
  return { ids: page.map(([id]) => id), next: hasMore ? { last, score: Number(score) } : undefined }
}

function encodeCursor({ queue, status }: ListQuery, cursor: Cursor): string {
  return Buffer.from(JSON.stringify({ queue, status, ...cursor })).toString('base64url')
}

function decodeCursor(query: ListQuery): Cursor {
  const { queue, status, cursor = '' } = query
  const parsed = cursorSchema.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (!parsed.success || parsed.data.queue !== queue || parsed.data.status !== status) throw invalidCursor(query)
  return parsed.data
}

function invalidCursor({ queue, status }: ListQuery): BullpenError {
  return new BullpenError(
    'invalid_cursor',
    `the cursor does not belong to a listing of queue '${queue}' with status '${status}'; send the \`next\` of the previous page, or no cursor to start again`,
  )
}
