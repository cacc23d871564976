// Lists the concurrency keys of the memory broker's tasks that take turns.
import { BullpenError } from '@bullpen/contract'
import type { KeyListQuery, KeyPage, KeyQuery, KeyState } from '@bullpen/engine/internal'
import { readJson } from './memory-listing.ts'
import type { MemoryStore } from './store/memory-store.ts'
import type { Place } from './store/stored-task.ts'

export function concurrencyKeys(store: MemoryStore, query: KeyQuery, now: number): KeyPage {
  const [waiting, active] = [countByKey(store, 'waiting'), countByKey(store, 'active')]
  const stateOf = (key: string): KeyState => ({ key, waiting: waiting.get(key) ?? 0, ...store.places.stateOf(key) })
  const waitingTasks = [...waiting.values()].reduce((sum, count) => sum + count, 0)
  const page = { now, waitingKeys: waiting.size, waitingTasks, exact: true }
  if (!('order' in query)) return { ...page, keys: [stateOf(query.concurrencyKey)], next: undefined }
  const from = query.cursor === undefined ? undefined : decode(query, query.cursor)
  const all = [...(query.order === 'backlog' ? waiting : active)].sort(compare)
  const left = from === undefined ? all : all.filter((each) => compare(from, each) < 0)
  const shown = left.slice(0, query.limit)
  const last = left.length > shown.length ? shown.at(-1) : undefined
  return { ...page, keys: shown.map(([key]) => stateOf(key)), next: last && encode(query, last) }
}

type Counted = readonly [key: string, count: number]

function countByKey(store: MemoryStore, place: Place): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { turn } of store.places.in(place)) {
    if (turn !== undefined) counts.set(turn.key, (counts.get(turn.key) ?? 0) + 1)
  }
  return counts
}

/** The largest count comes first, and keys with the same one are in the descending order of their names. */
function compare([key, count]: Counted, [other, ofOther]: Counted): number {
  return ofOther - count || (key === other ? 0 : key > other ? -1 : 1)
}

function encode({ queue, order }: KeyListQuery, [key, count]: Counted): string {
  return Buffer.from(JSON.stringify({ queue, order, key, count })).toString('base64url')
}

function decode({ queue, order }: KeyListQuery, cursor: string): Counted {
  const { key, count, ...of } = readJson(Buffer.from(cursor, 'base64url').toString())
  if (of['queue'] === queue && of['order'] === order && typeof key === 'string' && typeof count === 'number') {
    return [key, count]
  }
  throw new BullpenError(
    'invalid_cursor',
    `the cursor does not belong to a listing of the concurrency keys of queue '${queue}' by ${order}; send the \`next\` of the previous page, or no cursor to start again`,
  )
}
