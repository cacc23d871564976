// Lists a queue's tasks with a given status, page by page, in the order of the places that hold them.
import { BullpenError, type TaskId } from '@bullpen/contract'
import type { ListQuery } from '@bullpen/engine'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import { PLACES, type PlaceName, placesOf } from '../internals/status/places.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

/**
 * Where a listing continues. In a list, the position is the last task shown. In a sorted set, it is the last score and how many
 * tasks with that score were shown. Without a position, the listing continues at the start of the place.
 */
const positionSchema = z.union([
  z.object({ last: z.string() }),
  z.object({ score: z.number(), passed: z.int().nonnegative() }),
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
 * Returns the ids of one page, which is full unless it is the last. Takes one round trip for each place of the status, and one
 * more for a later page of a list.
 *
 * @throws BullpenError `invalid_cursor`.
 */
export async function listIds(redis: Commander, keys: QueueKeys, query: ListQuery): Promise<IdPage> {
  const places = placesOf(query.status)
  let cursor: Cursor = query.cursor === undefined ? { place: 0 } : decodeCursor(query)
  const ids: string[] = []
  for (; cursor.place < places.length && ids.length < query.limit; cursor = { place: cursor.place + 1 }) {
    const name = places[cursor.place] as PlaceName
    const readPage = PLACES[name].type === 'list' ? listPage : sortedSetPage
    const page = await readPage(redis, keys[name], query.limit - ids.length, cursor.at)
    ids.push(...page.ids)
    if (page.next !== undefined)
      return { ids: ids as TaskId[], next: encodeCursor(query, { ...cursor, at: page.next }) }
  }
  const next = cursor.place < places.length ? encodeCursor(query, cursor) : undefined
  return { ids: ids as TaskId[], next }
}

/**
 * Reads one page of a list. BullMQ takes jobs from the right end of a list. A listing starts there, with the next task to run,
 * and each page continues to the left of the last task shown. If that task has since been taken, so have all tasks to its right,
 * and the listing continues at the right end. A task that keeps waiting is therefore never skipped.
 */
async function listPage(
  redis: Commander,
  key: string,
  limit: number,
  position: Position | undefined,
): Promise<PlacePage> {
  const last = position !== undefined && 'last' in position ? position.last : undefined
  const index = last === undefined ? null : await redis.lpos(key, last, 'RANK', -1)
  // The last task shown was the newest, so there are no more tasks.
  if (index === 0) return { ids: [], next: undefined }
  const end = index === null ? -1 : index - 1
  const found = (await redis.lrange(key, end < 0 ? end - limit : Math.max(0, end - limit), end)).reverse()
  const ids = found.slice(0, limit)
  const lastShown = ids.at(-1)
  return { ids, next: found.length > limit && lastShown !== undefined ? { last: lastShown } : undefined }
}

async function sortedSetPage(
  redis: Commander,
  key: string,
  limit: number,
  position: Position | undefined,
): Promise<PlacePage> {
  const { score, passed } = position !== undefined && 'score' in position ? position : { score: undefined, passed: 0 }
  const from = score ?? Number.NEGATIVE_INFINITY
  const found = pairs(await redis.zrangebyscore(key, from, '+inf', 'WITHSCORES', 'LIMIT', passed, limit + 1))
  const page = found.slice(0, limit)
  const ids = page.map(({ id }) => id)
  const last = page.at(-1)
  if (found.length <= limit || last === undefined) return { ids, next: undefined }
  const ofLastScore = page.filter((entry) => entry.score === last.score).length
  const passedBefore = last.score === score ? passed : 0
  return { ids, next: { score: last.score, passed: passedBefore + ofLastScore } }
}

function pairs(flat: readonly string[]): { id: string; score: number }[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({ id: flat[2 * i] ?? '', score: Number(flat[2 * i + 1]) }))
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
    `the cursor does not belong to a listing of queue '${queue}', status '${status}'`,
  )
}
