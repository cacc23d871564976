// Finds out which of many elements are in lists, by reading each list once.
//
// Redis finds one element of a list in O(n). Looking for every waiting task of a long queue in this way would take Redis hours, so
// the lists are read instead, page by page. Tasks may move while a list is read, so an element that is not found may nevertheless
// be in the list. The caller checks such elements one by one.
import { type LanePosition, readLanesPage } from '../queries/lanes-page.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import type { Commander } from '../scripts/script.ts'
import type { OwnershipOptions } from './ownership.ts'
import type { Condition } from './rows/key-row.ts'
import { unlessWrongType } from './wrong-type.ts'

/** How many elements are read at once, which takes Redis about 0.1 ms. */
const READ_AT_ONCE = 1_000

/**
 * Returns those of these conditions, all of the kinds `listed` and `laned`, that hold. Takes one round trip for every 1,000
 * elements of each list, and for all lanes of a queue.
 */
export async function findListed(
  { redis, call }: OwnershipOptions,
  conditions: readonly Condition[],
): Promise<ReadonlySet<Condition>> {
  const found = new Set<Condition>()
  for (const [key, group] of Map.groupBy(conditions, ({ key }) => key)) {
    const wanted = Map.groupBy(group, ({ argument }) => argument)
    const read = group[0]?.kind === 'laned' ? laneReader(redis, key) : listReader(redis, key)
    while (wanted.size > 0) {
      const sentAt = performance.now()
      const elements = await call(read)
      for (const element of elements) {
        for (const condition of wanted.get(element) ?? []) found.add(condition)
        wanted.delete(element)
      }
      if (elements.length < READ_AT_ONCE) break
      await pauseAfterPage(sentAt)
    }
  }
  return found
}

/** Returns a function that reads the next page. */
type PageReader = () => Promise<readonly string[]>

function listReader(redis: Commander, list: string): PageReader {
  let at = 0
  return () => {
    const reading = redis.lrange(list, at, at + READ_AT_ONCE - 1)
    at += READ_AT_ONCE
    return unlessWrongType(reading, [])
  }
}

/** `base` is the prefix of the queue's keys. */
function laneReader(redis: Commander, base: string): PageReader {
  let at: LanePosition | undefined
  return async () => {
    const reading = readLanesPage(redis, { lanes: `${base}lanes`, base }, at, READ_AT_ONCE)
    const page = await unlessWrongType(reading, { ids: [], at: undefined })
    at = page.at
    return page.ids
  }
}
