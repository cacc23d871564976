// Listing a queue's tasks of one status, page by page, in the order of the Redis structure that holds them.
import { BullpenError, type TaskId, type TaskStatus } from '@bullpen/contract'
import type { ListQuery } from '@bullpen/engine'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import type { QueueKeys } from '../keys.ts'

/** Which structure holds a status. Two statuses can share one: a page then leaves out what is of the other. */
const HELD_IN = {
  waiting: 'wait',
  active: 'active',
  scheduled: 'delayed',
  retrying: 'delayed',
  completed: 'completed',
  dead: 'failed',
  cancelled: 'failed',
  expired: 'failed',
} as const satisfies Record<TaskStatus, keyof QueueKeys>

/** In a list: the last task shown. In a sorted set: the last score, and how many of that score have been passed. */
const positionSchema = z.union([
  z.object({ last: z.string() }),
  z.object({ score: z.number(), passed: z.int().nonnegative() }),
])

type Position = z.infer<typeof positionSchema>

const cursorSchema = z.object({ queue: z.string(), status: z.string(), at: positionSchema })

export interface IdPage {
  readonly ids: readonly TaskId[]
  readonly next: string | undefined
}

/** The ids of one page. One round trip; two for a further page of a list. @throws BullpenError `invalid_cursor`. */
export async function listIds(redis: Redis, keys: QueueKeys, query: ListQuery): Promise<IdPage> {
  const position = query.cursor === undefined ? undefined : decode(query)
  const structure = HELD_IN[query.status]
  const { ids, next } =
    structure === 'wait' || structure === 'active'
      ? await fromList(redis, keys[structure], query.limit, position)
      : await fromSet(redis, keys[structure], query.limit, position)
  return { ids: ids as TaskId[], next: next && encode(query, next) }
}

/**
 * BullMQ takes from the right end of a list: that is where the next to run stands, and where a listing begins. It goes on
 * to the left of the last task shown; when that one has been taken since, everything before it has been, too, and the
 * listing goes on at the right end. So none that goes on waiting is missed.
 */
async function fromList(redis: Redis, key: string, limit: number, position: Position | undefined) {
  const last = position !== undefined && 'last' in position ? position.last : undefined
  const at = last === undefined ? null : await redis.lpos(key, last, 'RANK', -1)
  const end = at === null ? -1 : at - 1
  // An index before the first element: the last task shown was the newest.
  if (at === 0) return { ids: [], next: undefined }
  const found = (await redis.lrange(key, end < 0 ? end - limit : Math.max(0, end - limit), end)).reverse()
  const ids = found.slice(0, limit)
  const shown = ids.at(-1)
  return { ids, next: found.length > limit && shown !== undefined ? { last: shown } : undefined }
}

async function fromSet(redis: Redis, key: string, limit: number, position: Position | undefined) {
  const { score, passed } = position !== undefined && 'score' in position ? position : { score: undefined, passed: 0 }
  const from = score ?? Number.NEGATIVE_INFINITY
  const answer = await redis.zrangebyscore(key, from, '+inf', 'WITHSCORES', 'LIMIT', passed, limit + 1)
  const found = pairs(answer)
  const page = found.slice(0, limit)
  const last = page.at(-1)
  if (found.length <= limit || last === undefined) return { ids: page.map((entry) => entry.id), next: undefined }
  const alike = page.filter((entry) => entry.score === last.score).length
  const before = last.score === score ? passed : 0
  return { ids: page.map((entry) => entry.id), next: { score: last.score, passed: before + alike } }
}

function pairs(flat: readonly string[]): { id: string; score: number }[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({ id: flat[2 * i] ?? '', score: Number(flat[2 * i + 1]) }))
}

function encode({ queue, status }: ListQuery, position: Position): string {
  return Buffer.from(JSON.stringify({ queue, status, at: position })).toString('base64url')
}

function decode({ queue, status, cursor = '' }: ListQuery): Position {
  const parsed = cursorSchema.safeParse(readJson(Buffer.from(cursor, 'base64url').toString()))
  if (!parsed.success || parsed.data.queue !== queue || parsed.data.status !== status) {
    throw new BullpenError(
      'invalid_cursor',
      `the cursor is not one that a listing of queue '${queue}', status '${status}' gave`,
    )
  }
  return parsed.data.at
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
