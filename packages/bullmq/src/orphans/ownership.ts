// Asks Redis which of many keys and entries have no owner, or deletes those, a few at a time.

import type { RedisAccess } from '../schema.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { runScript } from '../scripts/script.ts'
import { checkOrphansScript, deleteOrphansScript } from '../store/scripts.ts'
import { encodeSubject, type Subject, type SubjectState } from './subject.ts'

export type OwnershipOptions = Pick<RedisAccess, 'redis' | 'call'>

/** How many conditions one script examines, and of how many subjects. Both take Redis about 1 ms. */
const CONDITIONS_AT_ONCE = 500
const SUBJECTS_AT_ONCE = 300
/** How many subjects one script examines if it has to search lists, each of which takes Redis up to 3 ms for 200,000 elements. */
const SEARCHED_AT_ONCE = 3

/**
 * Returns the state of each subject. With `deletes`, also deletes those without an owner. Each script takes one round trip, is
 * atomic, and is followed by a pause that is as long as the script.
 */
export async function statesOf(
  { redis, call }: OwnershipOptions,
  subjects: readonly Subject[],
  { deletes = false }: { readonly deletes?: boolean } = {},
): Promise<ReadonlyMap<Subject, SubjectState>> {
  const states = new Map<Subject, SubjectState>()
  const script = deletes ? deleteOrphansScript : checkOrphansScript
  for (const [, group] of Map.groupBy(subjects, (subject) => `${tagOf(subject.key)} ${searchesList(subject)}`)) {
    for (const page of pagesOf(group)) {
      const [first] = page
      const sentAt = performance.now()
      const found = await call(() => runScript(redis, script, { first: first.key }, {}, page.flatMap(encodeSubject)))
      for (const [at, state] of found.entries()) states.set(page[at] as Subject, state)
      await pauseAfterPage(sentAt)
    }
  }
  return states
}

/** Divides subjects that share a hash slot, and that all need lists to be searched or all do not. */
function* pagesOf(subjects: readonly Subject[]): Generator<readonly [Subject, ...Subject[]]> {
  let page: [Subject, ...Subject[]] | undefined
  let conditions = 0
  for (const subject of subjects) {
    if (page === undefined) page = [subject]
    else page.push(subject)
    conditions += subject.owned.length
    const most = searchesList(subject) ? SEARCHED_AT_ONCE : SUBJECTS_AT_ONCE
    if (page.length < most && conditions < CONDITIONS_AT_ONCE) continue
    yield page
    page = undefined
    conditions = 0
  }
  if (page !== undefined) yield page
}

/** All keys with the same tag share a hash slot. */
const tagOf = (key: string): string => key.slice(0, key.indexOf('}') + 1)

function searchesList({ type, entry, owned }: Subject): boolean {
  return (entry !== undefined && type === 'list') || owned.some(({ kind }) => kind === 'listed' || kind === 'laned')
}
