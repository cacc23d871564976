// Parses how many permits a queue has, how many of them a task needs, and how many tasks of a definition may run at once.
import { suggestion } from '../nearest.ts'
import { checkOptions, checkWhole, type Fail, isRecord } from '../options.ts'

export interface SharedPermits {
  /** How many permits there are for all queues that share them. */
  readonly total: number
  /** Which share of them this queue has, above 0 and at most 1. The queue has `total * share` permits, rounded down. */
  readonly share: number
}

/** The names of permits and how many of them there are. */
export type Permits = Readonly<Record<string, number>>

/** The largest number of permits of one name in a queue, and the largest `concurrency` of a definition. */
export const MAX_PERMITS = 1_000_000
/** How many names of permits a queue may have. */
const MAX_NAMES = 32
/** How many different permits a task may need. */
const MAX_NEEDS = 8

/** The names of permits and of services. */
export const SHORT_NAME = /^[a-z][a-z0-9._-]{0,39}$/

export const SHORT_NAME_RULE =
  'expected a lower-case letter followed by lower-case letters, digits, dots, hyphens and underscores, at most 40 characters'

const SHARED: readonly string[] = ['total', 'share'] satisfies readonly (keyof SharedPermits)[]

/** Returns how many permits a queue has of each name, or undefined if it has none. `fail` throws an error that names the queue. */
export function queuePermits(given: Readonly<Record<string, number | SharedPermits>>, fail: Fail): Permits | undefined {
  if (!isRecord(given)) fail(`limits.permits is ${JSON.stringify(given)}; expected an object such as { db: 10 }`)
  const entries = Object.entries(given)
  if (entries.length > MAX_NAMES) fail(`limits.permits has ${entries.length} names; expected at most ${MAX_NAMES}`)
  const permits = entries.map(([name, value]) => {
    if (!SHORT_NAME.test(name)) fail(`limits.permits has the invalid name ${JSON.stringify(name)}; ${SHORT_NAME_RULE}`)
    return [name, countOf(`limits.permits.${name}`, value, fail)] as const
  })
  return permits.length === 0 ? undefined : Object.freeze(Object.fromEntries(permits))
}

function countOf(name: string, given: number | SharedPermits, fail: Fail): number {
  if (!isRecord(given)) return whole(name, given, fail)
  checkOptions(name, given, { settings: SHARED, expected: SHARED.join(' and ') }, fail)
  const { total, share } = given
  if (typeof share !== 'number' || !(share > 0 && share <= 1)) {
    fail(`${name}.share is ${JSON.stringify(share)}; expected a number above 0 and at most 1, such as 0.3`)
  }
  // A product such as 10 * 0.3 may be a little below the whole number that is meant.
  const count = Math.floor(whole(`${name}.total`, total, fail) * share + 1e-9)
  if (count < 1) fail(`${name} gives the queue less than one permit: ${share} of ${total}; raise its share`)
  return count
}

/**
 * Returns the permits that each task of a definition needs. `fail` throws an error that names the task. A task could never
 * start if it needed permits that its queue does not have.
 */
export function neededPermits(
  given: Permits,
  queue: { readonly name: string; readonly permits: Permits | undefined },
  fail: Fail,
): Permits {
  if (!isRecord(given)) fail(`permits is ${JSON.stringify(given)}; expected an object such as { db: 1 }`)
  const entries = Object.entries(given)
  if (entries.length > MAX_NEEDS) fail(`permits has ${entries.length} names; expected at most ${MAX_NEEDS}`)
  const { permits = {} } = queue
  const names = Object.keys(permits)
  for (const [name, count] of entries) {
    if (!Object.hasOwn(permits, name)) {
      const known = names.length === 0 ? 'no permits' : `only the permits ${names.join(', ')}`
      fail(
        `permits.${name} is not in limits.permits of queue '${queue.name}', which has ${known}${suggestion(name, names)}`,
      )
    }
    whole(`permits.${name}`, count, fail)
    const most = permits[name] ?? 0
    if (count > most)
      fail(`permits.${name} is ${count}, but queue '${queue.name}' has only ${most}; the task could never start`)
  }
  return Object.freeze({ ...given })
}

/** Returns how many tasks of a definition may run at once. */
export function definitionConcurrency(given: number, fail: Fail): number {
  return whole('concurrency', given, fail)
}

function whole(name: string, given: number, fail: Fail): number {
  checkWhole(name, given, { min: 1, max: MAX_PERMITS }, fail)
  return given
}
