// What a task needs besides a slot: shares of the limiters of its queue. A need is a limiter and an amount, such as
// `permits:db=3`.
import type { Need } from '@bullpen/engine'

/** Separates the needs from the concurrency key in the name of a lane. */
export const NEEDS_MARK = '\x1e'

/**
 * Returns the name of a lane. It is the concurrency key, and then the mark and the needs in alphabetical order. Without
 * needs, the name is the key alone, unless the key contains the mark.
 */
export function laneName(key: string, needs: readonly Need[]): string {
  if (needs.length === 0 && !key.includes(NEEDS_MARK)) return key
  const stored = needs.map(({ limiter, amount }) => `${limiter}=${amount}`)
  return `${key}${NEEDS_MARK}${stored.toSorted().join(',')}`
}

/** Returns the concurrency key in the name of a lane, or undefined if its tasks have none. */
export function keyIn(name: string): string | undefined {
  const mark = name.lastIndexOf(NEEDS_MARK)
  const key = mark < 0 ? name : name.slice(0, mark)
  return key === '' ? undefined : key
}
