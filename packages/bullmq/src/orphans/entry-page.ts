// Reads the entries of a list, a set, a sorted set or a hash, page by page.

import { pairsOf } from '../scripts/pairs.ts'
import type { Commander } from '../scripts/script.ts'
import type { Entry, KeyType } from './rows/key-row.ts'
import { unlessWrongType } from './wrong-type.ts'

export interface EntryPage {
  readonly entries: readonly Entry[]
  /** Where the next page begins, or '0' at the end. */
  readonly next: string
}

/** The approximate number of entries of one page. */
const PAGE_SIZE = 300
const NO_ENTRIES: EntryPage = { entries: [], next: '0' }

/**
 * Reads one page. `at` is '0' for the first page. An entry that stays in a set, a sorted set or a hash is on at least one page. In
 * a list, an element may be missed if others move meanwhile. A key that does not exist, or has another type, has no entries.
 */
export function readEntries(redis: Commander, key: string, type: KeyType, at: string): Promise<EntryPage> {
  return unlessWrongType(READERS[type](redis, key, at), NO_ENTRIES)
}

type Reader = (redis: Commander, key: string, at: string) => Promise<EntryPage>

const READERS: Readonly<Record<KeyType, Reader>> = {
  async list(redis, key, at) {
    const first = Number(at)
    const elements = await redis.lrange(key, first, first + PAGE_SIZE - 1)
    const entries = elements.map((name) => ({ name, value: '' }))
    return { entries, next: elements.length < PAGE_SIZE ? '0' : String(first + PAGE_SIZE) }
  },
  async set(redis, key, at) {
    const [next, members] = await redis.sscan(key, at, 'COUNT', PAGE_SIZE)
    return { entries: members.map((name) => ({ name, value: '' })), next }
  },
  async 'sorted set'(redis, key, at) {
    const [next, flat] = await redis.zscan(key, at, 'COUNT', PAGE_SIZE)
    return { entries: inPairs(flat), next }
  },
  async hash(redis, key, at) {
    const [next, flat] = await redis.hscan(key, at, 'COUNT', PAGE_SIZE)
    return { entries: inPairs(flat), next }
  },
  string: async () => NO_ENTRIES,
  stream: async () => NO_ENTRIES,
}

function inPairs(flat: readonly string[]): Entry[] {
  return pairsOf(flat).map(([name, value]) => ({ name, value }))
}

/** Returns the entry with this name as it is now, or undefined if there is none. Takes up to one round trip. */
export async function readEntry(
  redis: Commander,
  key: string,
  type: KeyType,
  name: string,
): Promise<Entry | undefined> {
  // The script that deletes an entry of a list or a set looks whether it is there.
  if (type === 'list' || type === 'set') return { name, value: '' }
  const read = type === 'hash' ? redis.hget(key, name) : redis.zscore(key, name)
  const value = await unlessWrongType(read, null)
  return value === null ? undefined : { name, value }
}
