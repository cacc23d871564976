// What a task needs besides a slot: shares of the limiters of its queue. A need is a limiter and an amount, such as
// `permits:db=3`.
import type { Need } from '@bullpen/engine'

/** Separates the needs from the concurrency key in the name of a lane. */
export const NEEDS_MARK = '\x1e'

/** The same byte in Lua. */
export const LUA_MARK = String.raw`'\30'`

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

/**
 * Lua lines that declare the local variables `key` and `needs`: the concurrency key, '' if the tasks have none, and the
 * needs, nil if they have none. `name` is a Lua expression for the name of the lane.
 */
export const splitName = (name: string): string => `local key, needs = ${name}, nil
      if string.find(key, ${LUA_MARK}, 1, true) then key, needs = string.match(key, '^(.*)\\30([^\\30]*)$') end`

/** A Lua loop over needs, which declares `limiter` and `amount`. `needs` is a Lua expression. */
export const eachNeed = (needs: string): string => `for limiter, amount in string.gmatch(${needs}, '([^,]+)=(%d+)') do`
