// The limits of the drill `exactness`: at most 1 to 5 tasks of a concurrency key may run at once, and some tasks need permits.
import type { PerConcurrencyKeyOptions } from '@bullpen/contract'

const KEYS = 1_000
const MOST = 5
/** Every fifth key has no limit of its own. */
const DEFAULT = 3

export const keyName = (key: number): string => `key-${key}`
export const limitOfKey = (key: number): number => 1 + (key % MOST)

const own = Array.from({ length: KEYS }, (_, key) => key).filter((key) => limitOfKey(key) !== DEFAULT)

export const KEY_LIMITS: PerConcurrencyKeyOptions = {
  concurrency: DEFAULT,
  keys: Object.fromEntries(own.map((key) => [keyName(key), { concurrency: limitOfKey(key) }])),
}

/** How many permits there are, and how many the tasks of two further definitions need. */
export const PERMITS = { db: 20 } as const
export const NEEDS = { light: { db: 1 }, heavy: { db: 4 } } as const
