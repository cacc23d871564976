// Reads the concurrency keys of a queue: a single one, or those with the most waiting or active tasks, page by page.
import { BullpenError, type KeyBlock, type LimitSource } from '@bullpen/contract'
import { KEY_ORDERS } from '@bullpen/contract/internal'
import type { KeyLimit, KeyListQuery, KeyPage, KeyQuery, KeyState } from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import { decodeStartRate } from '../internals/turns/key-limits.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { countActiveLanesScript, describeKeysScript, rankLanesScript, sortedSetPageScript } from '../store/scripts.ts'

/** How many lanes or tasks one script examines. A lane takes two commands, and a task one. */
const SCAN = 1_000
/** How many scripts one page may take. */
const MAX_LANE_SCANS = 200
const MAX_ACTIVE_SCANS = 10

/** After which key a page begins. */
const cursorSchema = z.object({
  queue: z.string(),
  order: z.enum(KEY_ORDERS),
  key: z.string(),
  count: z.int().nonnegative(),
})

interface RankedKey {
  readonly key: string
  readonly count: number
}

/** The keys in the order of a listing, and whether all keys have been examined. */
interface Ranking {
  readonly keys: readonly RankedKey[]
  readonly exact: boolean
}

type Call = <T>(run: () => Promise<T>) => Promise<T>

interface Source {
  readonly redis: Commander
  readonly keys: QueueKeys
  readonly call: Call
}

/**
 * Reads a page. See `Broker.concurrencyKeys` for what it costs. `call` limits how long each round trip may take.
 *
 * @throws BullpenError `invalid_cursor`.
 */
export async function readKeys(redis: Commander, keys: QueueKeys, query: KeyQuery, call: Call): Promise<KeyPage> {
  const source = { redis, keys, call }
  const from = 'order' in query && query.cursor !== undefined ? decodeCursor(query, query.cursor) : undefined
  // A queue that limits its keys counts their active tasks.
  const isLimited = (await call(() => redis.exists(keys.keyLimits))) === 1
  const active = isLimited ? undefined : await activeByKey(source)
  const waiting = await waitingByKey(source)
  const exact = (active?.exact ?? true) && (waiting?.exact ?? true)
  if (!('order' in query))
    return { ...(await describe(source, [query.concurrencyKey], active, waiting)), exact, next: undefined }
  const ranked = await rank(source, query, from, active, waiting)
  // One key more than the page shows whether another page follows.
  const shown = ranked.keys.slice(0, query.limit)
  const page = await describe(
    source,
    shown.map(({ key }) => key),
    active,
    waiting,
  )
  const last = ranked.keys.length > shown.length ? shown.at(-1) : undefined
  const next = last === undefined ? undefined : encodeCursor(query, last)
  return { ...page, exact: exact && ranked.exact, next }
}

/** Reads the state of these keys. */
async function describe(
  { redis, keys, call }: Source,
  names: readonly string[],
  active: CountsByKey | undefined,
  waiting: CountsByKey | undefined,
): Promise<Omit<KeyPage, 'next' | 'exact'>> {
  const [now, waitingKeys, waitingTasks, states] = await call(() =>
    runScript(redis, describeKeysScript, keys, { base: keys.base }, names),
  )
  const countOf = (key: string, counted: number): number =>
    active === undefined ? counted : (active.counts.get(key) ?? 0)
  const countsOf = (
    key: string,
    state: Pick<KeyState, 'waiting' | 'active'>,
  ): Pick<KeyState, 'waiting' | 'active'> => ({
    waiting: waiting === undefined ? state.waiting : (waiting.counts.get(key) ?? 0),
    active: countOf(key, state.active),
  })
  return {
    now: Number(now),
    waitingKeys,
    waitingTasks: Number(waitingTasks),
    ...(waiting !== undefined && {
      waitingKeys: waiting.counts.size,
      waitingTasks: [...waiting.counts.values()].reduce((sum, count) => sum + count, 0),
    }),
    keys: names.flatMap((key, i) => {
      const state = states[i]
      if (state === undefined) return []
      const decoded = decodeKey(state)
      return [{ ...decoded, key, ...countsOf(key, decoded) }]
    }),
  }
}

type StoredLimit = [] | [value: string, isOwn: 0 | 1, source: LimitSource]

/** What describe-keys.lua returns of a key. */
export type StoredKey = [
  waiting: number,
  active: number,
  concurrency: StoredLimit,
  rate: StoredLimit,
  blocks: KeyBlock[],
  startsAt: string,
]

function decodeKey([waiting, active, concurrency, rate, blockedBy, startsAt]: StoredKey): Omit<KeyState, 'key'> {
  return {
    waiting,
    active,
    concurrency: decodeLimit(concurrency, Number),
    rate: decodeLimit(rate, decodeStartRate),
    blockedBy,
    nextStartAt: startsAt === '' ? undefined : Number(startsAt),
  }
}

function decodeLimit<T>(limit: StoredLimit, decodeValue: (stored: string) => T): KeyLimit<T> | undefined {
  if (limit.length === 0) return undefined
  const [value, isOwn, source] = limit
  return { value: decodeValue(value), isOwn: isOwn === 1, source }
}

async function rank(
  source: Source,
  { order, limit }: KeyListQuery,
  from: RankedKey | undefined,
  active: CountsByKey | undefined,
  waiting: CountsByKey | undefined,
): Promise<Ranking> {
  const { redis, keys, call } = source
  const most = limit + 1
  if (order === 'backlog')
    return waiting === undefined ? longestLanes(source, from, most) : largest(waiting, from, most)
  if (active === undefined) {
    const args = { score: from?.count ?? '', last: from?.key ?? '', limit: most, descends: 1 }
    const page = await call(() => runScript(redis, sortedSetPageScript, { set: keys.activeByKey }, args))
    return { keys: page.map(([key, score]) => ({ key, count: Number(score) })), exact: true }
  }
  return largest(active, from, most)
}

function largest({ counts, exact }: CountsByKey, from: RankedKey | undefined, most: number): Ranking {
  const all = [...counts].map(([key, count]) => ({ key, count }))
  const left = from === undefined ? all : all.filter((each) => compare(from, each) < 0)
  return { keys: left.sort(compare).slice(0, most), exact }
}

/** Finds the keys with the most waiting tasks, one part of the lanes after the other. */
async function longestLanes(
  { redis, keys, call }: Source,
  from: RankedKey | undefined,
  limit: number,
): Promise<Ranking> {
  let longest: readonly RankedKey[] = []
  let after = ''
  for (let scans = 0; scans < MAX_LANE_SCANS; scans++) {
    // A shorter lane has no place on the page.
    const last = longest[limit - 1]
    const bounds = {
      ...{ fromCount: from?.count ?? '', fromKey: from?.key ?? '' },
      ...{ lastCount: last?.count ?? '', lastKey: last?.key ?? '' },
    }
    const args = { base: keys.base, after, scan: SCAN, ...bounds }
    const [found, next] = await call(() => runScript(redis, rankLanesScript, keys, args))
    // A lane that was empty for a moment meanwhile is examined twice.
    const all = new Map([...longest.map(({ key, count }) => [key, count] as const), ...found])
    longest = [...all]
      .map(([key, count]) => ({ key, count }))
      .sort(compare)
      .slice(0, limit)
    if (next === '') return { keys: longest, exact: true }
    after = next
  }
  return { keys: longest, exact: false }
}

interface CountsByKey {
  readonly counts: ReadonlyMap<string, number>
  /** False if not all lanes or active tasks were examined. */
  readonly exact: boolean
}

/**
 * Counts the waiting tasks of each key, for a queue whose tasks have needs, so that a key may have several lanes. Returns undefined for any
 * other queue.
 */
async function waitingByKey({ redis, keys, call }: Source): Promise<CountsByKey | undefined> {
  if ((await call(() => redis.exists(keys.capacities, keys.keyPasses, keys.breakers))) === 0) return undefined
  const counts = new Map<string, number>()
  let after = ''
  for (let scans = 0; scans < MAX_LANE_SCANS; scans++) {
    const bounds = { fromCount: '', fromKey: '', lastCount: '', lastKey: '' }
    const args = { base: keys.base, after, scan: SCAN, ...bounds }
    const [found, next] = await call(() => runScript(redis, rankLanesScript, keys, args))
    for (const [key, count] of found) counts.set(key, (counts.get(key) ?? 0) + count)
    if (next === '') return { counts, exact: true }
    after = next
  }
  return { counts, exact: false }
}

/** Counts the active tasks of each key, for a queue that does not limit its keys. */
async function activeByKey({ redis, keys, call }: Source): Promise<CountsByKey> {
  const counts = new Map<string, number>()
  const length = await call(() => redis.llen(keys.active))
  const examined = Math.min(length, MAX_ACTIVE_SCANS * SCAN)
  for (let passed = 0; passed < examined; passed += SCAN) {
    const found = await call(() =>
      runScript(redis, countActiveLanesScript, keys, { base: keys.base, passed, scan: SCAN }),
    )
    for (const [key, count] of found) counts.set(key, (counts.get(key) ?? 0) + count)
  }
  return { counts, exact: examined === length }
}

/** Sorts keys as Redis sorts a sorted set from its highest score. */
function compare(a: RankedKey, b: RankedKey): number {
  return b.count - a.count || Buffer.compare(Buffer.from(b.key), Buffer.from(a.key))
}

function encodeCursor({ queue, order }: KeyListQuery, last: RankedKey): string {
  return Buffer.from(JSON.stringify({ queue, order, ...last })).toString('base64url')
}

function decodeCursor({ queue, order }: KeyListQuery, cursor: string): RankedKey {
  const parsed = cursorSchema.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (parsed.success && parsed.data.queue === queue && parsed.data.order === order) return parsed.data
  throw new BullpenError(
    'invalid_cursor',
    `the cursor does not belong to a listing of the concurrency keys of queue '${queue}' by ${order}; send the \`next\` of the previous page, or no cursor to start again`,
  )
}
