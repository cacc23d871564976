// Lists the memory broker's tasks of one status in pages, with cursors that keep their position while tasks move. Ended tasks are
// listed from the newest to the oldest.
import { BullpenError, isFinal, type TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import type { ListQuery, Page } from '@bullpen/engine'
import type { MemoryStore } from './store/memory-store.ts'
import { type Place, recordOf, type StoredTask, statusOf } from './store/stored-task.ts'

const PLACE_OF = {
  waiting: 'waiting',
  active: 'active',
  scheduled: 'delayed',
  retrying: 'delayed',
  completed: 'completed',
  dead: 'failed',
  cancelled: 'failed',
  expired: 'failed',
} as const satisfies Record<TaskStatus, Place>

/** The last task of a page. If the place is ordered by time, the task's time is included, because the task may have moved since. */
interface Position {
  readonly last: string
  readonly at: number
}

export function listTasks(store: MemoryStore, query: ListQuery): Page {
  const place = PLACE_OF[query.status]
  const found = store.places.in(place).filter((task) => listedStatusOf(task) === query.status)
  const all = isFinal(query.status) ? found.toReversed() : found
  const left = query.cursor === undefined ? all : after(all, decode(query, query.cursor), place)
  const shown = left.slice(0, query.limit)
  const last = shown.at(-1)
  const next = last && left.length > shown.length ? encode(query, { last: last.id, at: momentOf(last) }) : undefined
  return { tasks: shown.map((task) => ({ ...recordOf(task), status: query.status })), next }
}

/** Counts the tasks in each status. The counts agree with the listings. */
export function countTasks(store: MemoryStore): Record<TaskStatus, number> {
  const counts = Object.fromEntries(TASK_STATUSES.map((status) => [status, 0])) as Record<TaskStatus, number>
  for (const place of new Set(Object.values(PLACE_OF))) {
    for (const task of store.places.in(place)) counts[listedStatusOf(task)]++
  }
  return counts
}

/**
 * Returns the status under which a task is listed. A task whose owner is lost is counted and listed as active until it is
 * recovered.
 */
function listedStatusOf(task: StoredTask): TaskStatus {
  return task.place === 'active' ? 'active' : statusOf(task)
}

/**
 * Returns the tasks after a position. In a place ordered by time, they are those that follow in the order of times and ids, or in the
 * reverse order if the tasks have ended. In the other places, the page starts at the beginning if the last task is no longer there.
 */
function after(all: readonly StoredTask[], { last, at }: Position, place: Place): readonly StoredTask[] {
  if (place === 'waiting' || place === 'active') return all.slice(all.findIndex(({ id }) => id === last) + 1)
  const isLater = (task: StoredTask): boolean => momentOf(task) > at || (momentOf(task) === at && task.id > last)
  if (place === 'delayed') return all.filter(isLater)
  return all.filter((task) => !isLater(task) && task.id !== last)
}

function momentOf({ dueAt, endedAt }: StoredTask): number {
  return dueAt ?? endedAt ?? 0
}

function encode({ queue, status }: ListQuery, position: Position): string {
  return Buffer.from(JSON.stringify({ queue, status, ...position })).toString('base64url')
}

function decode({ queue, status }: ListQuery, cursor: string): Position {
  const { queue: ofQueue, status: ofStatus, last, at } = readJson(Buffer.from(cursor, 'base64url').toString())
  if (ofQueue !== queue || ofStatus !== status || typeof last !== 'string' || typeof at !== 'number') {
    throw new BullpenError(
      'invalid_cursor',
      `the cursor does not belong to a listing of queue '${queue}' with status '${status}'; send the \`next\` of the previous page, or no cursor to start again`,
    )
  }
  return { last, at }
}

export function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}
