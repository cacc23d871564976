// Searches the memory broker's dead tasks, and counts them by fingerprint.
import { BullpenError } from '@bullpen/contract'
import type { Page } from '@bullpen/engine'
import { type DeadFilter, type DeadQuery, type FingerprintCount, matchesDead, tagsOf } from '@bullpen/engine/internal'
import { readJson } from '../memory-listing.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import { recordOf, type StoredTask, statusOf } from '../store/stored-task.ts'

/** Returns the dead tasks that match the filter, oldest first. */
export function matchingDead(store: MemoryStore, filter: DeadFilter): readonly StoredTask[] {
  return store.places.in('failed').filter((task) => statusOf(task) === 'dead' && matches(filter, task))
}

function matches(filter: DeadFilter, { task, envelope, errorKind: kind, attempts, endedAt = 0 }: StoredTask): boolean {
  if (kind === undefined) return false
  return matchesDead(filter, { task, tags: tagsOf(envelope), kind, message: attempts.at(-1)?.message ?? '', endedAt })
}

export function searchDead(store: MemoryStore, query: DeadQuery): Page {
  const all = matchingDead(store, query).toReversed()
  const from = query.cursor === undefined ? undefined : decode(query, query.cursor)
  const isLeft = ({ id, endedAt = 0 }: StoredTask) =>
    from === undefined || endedAt < from.at || (endedAt === from.at && id < from.last)
  const left = all.filter(isLeft)
  const shown = left.slice(0, query.limit)
  const last = shown.at(-1)
  const { queue, fingerprint } = query
  const position = last && { queue, fingerprint, last: last.id, at: last.endedAt }
  const next = left.length > shown.length ? Buffer.from(JSON.stringify(position)).toString('base64url') : undefined
  return { tasks: shown.map(recordOf), next }
}

function decode({ queue, fingerprint }: DeadQuery, cursor: string): { readonly last: string; readonly at: number } {
  const given = readJson(Buffer.from(cursor, 'base64url').toString())
  const { last, at } = given
  if (
    given['queue'] !== queue ||
    given['fingerprint'] !== fingerprint ||
    typeof last !== 'string' ||
    typeof at !== 'number'
  ) {
    throw new BullpenError(
      'invalid_cursor',
      `the cursor does not belong to this search for dead tasks of queue '${queue}'; send the \`next\` of the previous page with the same filter, or no cursor to start again`,
    )
  }
  return { last, at }
}

export function countDead(store: MemoryStore): readonly FingerprintCount[] {
  const dead = store.places.in('failed').filter((task) => statusOf(task) === 'dead')
  const counts = [...Map.groupBy(dead, ({ errorKind }) => errorKind?.fingerprint)].flatMap(([, tasks]) => {
    const [oldest, newest] = [tasks[0], tasks.at(-1)]
    if (oldest?.errorKind === undefined || newest === undefined) return []
    const times = { oldestAt: oldest.endedAt ?? 0, newestAt: newest.endedAt ?? 0, newestId: newest.id }
    return [{ ...oldest.errorKind, count: tasks.length, ...times }]
  })
  return counts.toSorted((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1))
}
