// Decides which ended tasks of a memory store are no longer kept.
import type { Retention } from '@bullpen/engine/internal'
import type { StoredTask } from './stored-task.ts'

interface OldTasks {
  readonly old: ReadonlySet<StoredTask>
  /** When the newest of the other tasks reaches its maximum age, in ms since 1970. Undefined if there are none, or no maximum. */
  readonly nextAt: number | undefined
}

/** `ended` contains the tasks of one final status in the order in which they ended, and `now` is in ms since 1970. */
export function oldTasks(
  ended: readonly StoredTask[],
  { ageMs = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY }: NonNullable<Retention[keyof Retention]>,
  now: number,
): OldTasks {
  const before = now - ageMs
  const old = new Set(ended.filter(({ endedAt = before }, i) => endedAt < before || i < ended.length - count))
  const newest = ended.at(-1)?.endedAt
  const isLast = newest === undefined || old.size === ended.length || ageMs === Number.POSITIVE_INFINITY
  return { old, nextAt: isLast ? undefined : newest + ageMs + 1 }
}
