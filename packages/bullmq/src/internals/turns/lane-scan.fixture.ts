// Reads all lanes of a queue, and finds what is wrong with them. The scans are unbounded, so only tests may use them.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../../keys.ts'

/** Returns, as JSON, the tasks of each lane with their fields, and everything that is stored about turns. */
const SCAN = `
local base = ARGV[1]
local prefix = string.gsub(base, '[%[%]*?\\\\]', '\\\\%0')
local found = { lanes = {}, named = redis.call('ZRANGE', base .. 'lanes', 0, -1), turns = redis.call('ZRANGE', base .. 'turns', 0, -1),
  state = redis.call('HMGET', base .. 'turn-state', 'waiting', 'order', 'pass'), blocked = redis.call('ZRANGE', base .. 'blocked-lanes', 0, -1), timed = redis.call('ZRANGE', base .. 'lane-times', 0, -1),
  limits = redis.call('HGETALL', base .. 'key-limits'), counted = redis.call('ZRANGE', base .. 'active-by-key', 0, -1, 'WITHSCORES'),
  active = {} }
local time = redis.call('TIME')
found.throttled = redis.call('ZRANGEBYSCORE', base .. 'key-throttles', time[1] * 1000 + time[2] / 1000 + 1, '+inf')
for _, id in ipairs(redis.call('LRANGE', base .. 'active', 0, -1)) do
  found.active[#found.active + 1] = redis.call('HGET', base .. id, 'lane') or ''
end
local function enter(key, ids)
  local lane = found.lanes[key] or { ids = {}, stored = {} }
  found.lanes[key] = lane
  for _, id in ipairs(ids) do
    lane.ids[#lane.ids + 1] = id
    lane.stored[#lane.stored + 1] = redis.call('HGET', base .. id, 'lane') or ''
  end
end
for _, key in ipairs(redis.call('KEYS', prefix .. 'lane:*')) do
  local ids, first_last = redis.call('LRANGE', key, 0, -1), {}
  for i = #ids, 1, -1 do first_last[#first_last + 1] = ids[i] end
  enter(string.sub(key, #base + 6), first_last)
end
for _, key in ipairs(redis.call('KEYS', prefix .. 'lane-priorities:*')) do
  enter(string.sub(key, #base + 17), redis.call('ZRANGE', key, 0, -1))
end
local paused, concurrency = unpack(redis.call('HMGET', base .. 'meta', 'paused', 'concurrency'))
found.stops = paused or concurrency and redis.call('LLEN', base .. 'active') >= tonumber(concurrency) or false
found.marker = redis.call('ZSCORE', base .. 'marker', '0')
-- Tasks with a lane that wait elsewhere.
found.strays = {}
for _, id in ipairs(redis.call('LRANGE', base .. 'wait', 0, -1)) do
  if redis.call('HEXISTS', base .. id, 'lane') == 1 then found.strays[#found.strays + 1] = id end
end
for _, id in ipairs(redis.call('ZRANGE', base .. 'prioritized', 0, -1)) do
  if redis.call('HEXISTS', base .. id, 'lane') == 1 then found.strays[#found.strays + 1] = id end
end
return cjson.encode(found)
`

interface Scan {
  /** By concurrency key: the tasks, in the order in which they start, and the field `lane` of each. */
  readonly lanes: Readonly<Record<string, { readonly ids: readonly string[]; readonly stored: readonly string[] }>>
  readonly named: readonly string[]
  readonly turns: readonly string[]
  readonly blocked: readonly string[]
  /** The blocked lanes that take turns again after some time. */
  readonly timed: readonly string[]
  /** The keys that a handler has throttled. */
  readonly throttled: readonly string[]
  /** A flat list of fields and values. */
  readonly limits: readonly string[]
  /** A flat list of concurrency keys and numbers of active tasks. */
  readonly counted: readonly string[]
  /** The field `lane` of each active task. */
  readonly active: readonly string[]
  readonly state: readonly [waiting: string | false, order: string | false, pass: string | false]
  /** Whether the queue is paused or at its cap. */
  readonly stops: unknown
  readonly marker: string | false
  readonly strays: readonly string[]
}

async function scanOf(redis: Redis, { base }: QueueKeys): Promise<Scan> {
  return JSON.parse((await redis.eval(SCAN, 0, base)) as string) as Scan
}

/** Returns the tasks in all lanes. */
export async function idsInLanes(redis: Redis, keys: QueueKeys): Promise<string[]> {
  return Object.values((await scanOf(redis, keys)).lanes).flatMap(({ ids }) => ids)
}

/**
 * Returns which invariants do not hold. `wakes` is false if no worker has to be woken for the queue's tasks. `before` has the number of
 * active tasks of each key at the previous call, and is updated, so that a key whose limit was lowered may keep its active tasks, and a throttled
 * one may not start any.
 */
export async function laneViolations(
  redis: Redis,
  keys: QueueKeys,
  { wakes = true, before }: { readonly wakes?: boolean; readonly before?: Map<string, number> } = {},
): Promise<string[]> {
  const { lanes, turns, blocked, state, stops, marker, strays, ...others } = await scanOf(redis, keys)
  const found: string[] = []
  const [...filled] = Object.keys(lanes)
  let waiting = 0
  for (const [key, { ids, stored }] of Object.entries(lanes)) {
    waiting += ids.length
    for (const [i, lane] of stored.entries()) {
      // The data of a task that another tool has deleted is gone.
      if (lane !== '' && !lane.endsWith(` ${key}`))
        found.push(`${ids[i]} is in the lane '${key}', its field is '${lane}'`)
    }
  }
  // An empty Lua table becomes an empty object.
  const named = Object.values(others.named)
  if (filled.toSorted().join() !== named.toSorted().join()) found.push(`lanes names ${named}, tasks are in ${filled}`)
  const [inTurns, inBlocked] = [new Set(Object.values(turns)), new Set(Object.values(blocked))]
  const without = filled.filter((key) => !inTurns.has(key) && !inBlocked.has(key))
  if (without.length > 0) found.push(`${without} have tasks, take no turns and are not blocked`)
  const both = [...inTurns].filter((key) => inBlocked.has(key))
  if (both.length > 0) found.push(`${both} take turns and are blocked`)
  if (Number(state[0] || 0) !== waiting) found.push(`${state[0]} tasks are counted, ${waiting} are in lanes`)
  const mayStart = filled.some((key) => inTurns.has(key))
  if (wakes && mayStart && !stops && marker === false)
    found.push(`${waiting} tasks are in lanes, and no marker wakes a worker`)
  for (const id of Object.values(strays)) found.push(`${id} has a lane and waits elsewhere`)
  return [...found, ...limitViolations(others, inBlocked, before)]
}

/** Returns how the counts of active tasks, and the blocked lanes, contradict the active tasks. */
function limitViolations(
  scan: Pick<Scan, 'limits' | 'counted' | 'active' | 'timed' | 'throttled'>,
  blocked: ReadonlySet<string>,
  before: Map<string, number> | undefined,
): string[] {
  const limits = pairsOf(scan.limits)
  const counted = pairsOf(scan.counted)
  const found: string[] = []
  const active = new Map<string, number>()
  for (const lane of Object.values(scan.active)) {
    const key = lane.slice(lane.indexOf(' ') + 1)
    if (lane !== '') active.set(key, (active.get(key) ?? 0) + 1)
  }
  for (const key of new Set([...active.keys(), ...counted.keys()])) {
    const [is, stored] = [limits.size > 0 ? (active.get(key) ?? 0) : 0, Number(counted.get(key) ?? 0)]
    if (is !== stored) found.push(`${stored} active tasks of '${key}' are counted, there are ${is}`)
  }
  const limitOf = (key: string): number =>
    Number(limits.get(`concurrency:${key}`) ?? limits.get('concurrency') ?? Number.POSITIVE_INFINITY)
  for (const [key, count] of active) {
    if (count > limitOf(key) && count > (before?.get(key) ?? 0)) found.push(`${count} tasks of '${key}' are active`)
  }
  for (const key of Object.values(scan.throttled)) {
    if (before !== undefined && (active.get(key) ?? 0) > (before.get(key) ?? 0))
      found.push(`'${key}' is throttled, and has started a task`)
  }
  before?.clear()
  for (const [key, count] of active) before?.set(key, count)
  const timed = new Set(Object.values(scan.timed))
  const unblocked = [...timed].filter((key) => !blocked.has(key))
  if (unblocked.length > 0) found.push(`${unblocked} have a time, but are not blocked`)
  for (const key of blocked) {
    if (timed.has(key)) continue
    if ((active.get(key) ?? 0) < limitOf(key)) found.push(`'${key}' is blocked without need`)
  }
  return found
}

function pairsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const values = Object.values(flat)
  return new Map(values.flatMap((name, i) => (i % 2 === 0 ? [[name, values[i + 1] ?? ''] as const] : [])))
}
