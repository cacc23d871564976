// Reads all lanes of a queue, and finds what is wrong with them. The scans are unbounded, so only tests may use them.

import type { QueueHead } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../../keys.ts'
import { readQueueHead } from '../../queries/queue-head.ts'
import { pairsOf } from '../../scripts/pairs.ts'
import { NEEDS_MARK } from './limiters/needs.ts'

/** Returns, as JSON, the tasks of each lane with their fields, and everything that is stored about turns. */
export const LANE_SCAN = `
local base = ARGV[1]
local prefix = string.gsub(base, '[%[%]*?\\\\]', '\\\\%0')
local found = { lanes = {}, named = redis.call('ZRANGE', base .. 'lanes', 0, -1), turns = redis.call('ZRANGE', base .. 'turns', 0, -1),
  state = redis.call('HMGET', base .. 'turn-state', 'waiting', 'order', 'pass'), blocked = redis.call('ZRANGE', base .. 'blocked-lanes', 0, -1), timed = redis.call('ZRANGE', base .. 'lane-times', 0, -1),
  limits = redis.call('HGETALL', base .. 'key-limits'), counted = redis.call('ZRANGE', base .. 'active-by-key', 0, -1, 'WITHSCORES'),
  active = {}, capacities = redis.call('HGETALL', base .. 'capacities'), in_use = redis.call('ZRANGE', base .. 'in-use', 0, -1, 'WITHSCORES'),
  waited = redis.call('ZRANGE', base .. 'waited-needs', 0, -1), waiters = {} }
for _, key in ipairs(redis.call('KEYS', prefix .. 'need-waiters:*')) do
  found.waiters[string.sub(key, #base + 14)] = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
end
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

export interface LaneScan {
  /** By the name of the lane: the tasks, in the order in which they start, and the field `lane` of each. */
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
  /** Flat lists of limiters and numbers. */
  readonly capacities: readonly string[]
  readonly in_use: readonly string[]
  /** The needs for which lanes wait, and by need, a flat list of lanes and tickets. */
  readonly waited: readonly string[]
  readonly waiters: Readonly<Record<string, readonly string[]>>
  /** The field `lane` of each active task. */
  readonly active: readonly string[]
  readonly state: readonly [waiting: string | false, order: string | false, pass: string | false]
  /** Whether the queue is paused or at its cap. */
  readonly stops: unknown
  readonly marker: string | false
  readonly strays: readonly string[]
}

async function scanOf(redis: Redis, { base }: QueueKeys): Promise<LaneScan> {
  return JSON.parse((await redis.eval(LANE_SCAN, 0, base)) as string) as LaneScan
}

/** Returns the tasks in all lanes. */
export async function idsInLanes(redis: Redis, keys: QueueKeys): Promise<string[]> {
  return Object.values((await scanOf(redis, keys)).lanes).flatMap(({ ids }) => ids)
}

/**
 * Returns which invariants do not hold. `wakes` is false if no worker has to be woken for the queue's tasks. `before`
 * has the number of active tasks of each key at the previous call, and is updated, so that a key whose limit was
 * lowered may keep its active tasks, and a throttled one may not start any.
 */
export async function laneViolations(redis: Redis, keys: QueueKeys, options: LaneCheck = {}): Promise<string[]> {
  const scan = await scanOf(redis, keys)
  const found = laneScanViolations(scan, options)
  // A rate limits the starts of the queue as a whole, so that all waiting tasks are blocked for a moment.
  const isLimited = (await redis.exists(`${keys.base}limiter`)) === 1
  return isLimited ? found : [...found, ...(await wrongHead(redis, keys, scan))]
}

/** Returns how the head of the queue contradicts the lanes, unless a limit of the whole queue blocks all of its tasks. */
export async function wrongHead(redis: Redis, keys: QueueKeys, scan: LaneScan): Promise<string[]> {
  const parents = await redis.zcard(`${keys.base}waiting-children`)
  const { blockedTasks, ...head } = await readQueueHead(redis, keys)
  return headViolations({ ...head, blockedTasks: blockedTasks - parents }, scan.lanes, lanesIn(scan))
}

interface LaneCheck {
  readonly wakes?: boolean
  readonly before?: Map<string, number>
}

/** Returns which of the invariants that concern nothing but the scan do not hold. */
export function laneScanViolations(scan: LaneScan, { wakes = true, before }: LaneCheck = {}): string[] {
  const { lanes, state, stops, marker, strays, ...others } = scan
  const world = lanesIn(scan)
  const { turns: inTurns, blocked: inBlocked, capacities, waiters, hasTicket, services } = world
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
  const without = filled.filter((key) => !inTurns.has(key) && !inBlocked.has(key))
  if (without.length > 0) found.push(`${without} have tasks, take no turns and are not blocked`)
  const both = [...inTurns].filter((key) => inBlocked.has(key))
  if (both.length > 0) found.push(`${both} take turns and are blocked`)
  if (Number(state[0] || 0) !== waiting) found.push(`${state[0]} tasks are counted, ${waiting} are in lanes`)
  const isWoken = (name: string): boolean => inTurns.has(name) && hasTicket(name)
  /** The next fetch lets the lanes of a service take turns again. */
  const mayResume = [...services].some((name) => !capacities.has(name) && waiters.has(`${name}=1`))
  const mayStart = filled.some((name) => inTurns.has(name)) || [...inTurns].some(isWoken) || mayResume
  // If no task waits, no marker is needed: the next task that is added adds it.
  if (wakes && waiting > 0 && mayStart && !stops && marker === false)
    found.push(`${waiting} tasks are in lanes, and no marker wakes a worker`)
  for (const id of Object.values(strays)) found.push(`${id} has a lane and waits elsewhere`)
  return [...found, ...limitViolations(others, world, before), ...limiterViolations(world, before)]
}

/** Returns how the head of the queue, whose blocked tasks are those in lanes, contradicts the lanes. */
function headViolations(
  { blockedTasks, nextReadyAt, oldestBlocked }: QueueHead,
  lanes: LaneScan['lanes'],
  { turns, blocked, timed, services }: Lanes,
): string[] {
  const tasksIn = (isCounted: (name: string) => boolean): number =>
    Object.entries(lanes).reduce((sum, [name, { ids }]) => sum + (isCounted(name) ? ids.length : 0), 0)
  /** Tasks of such a lane are not blocked as soon as its time has come. */
  const mayBeDue = (name: string): boolean =>
    timed.has(name) || split(name).needs.some(([limiter]) => services.has(limiter))
  const most = tasksIn((name) => blocked.has(name))
  const least = tasksIn((name) => blocked.has(name) && !mayBeDue(name))
  const isOfBlockedLane = Object.entries(lanes).some(
    ([name, { ids }]) => blocked.has(name) && ids.includes(oldestBlocked?.id ?? ''),
  )
  /** Nothing is known of a task whose data is deleted. */
  const isUnread = Object.values(lanes).some(({ stored }) => stored.includes(''))
  return [
    ...(blockedTasks < least || blockedTasks > most
      ? [`${blockedTasks} tasks are blocked, not ${least} to ${most}`]
      : []),
    ...((oldestBlocked === undefined ? least > 0 && !isUnread : !isOfBlockedLane)
      ? [`the oldest blocked task is ${oldestBlocked?.id ?? 'missing'}, although ${least} to ${most} tasks are blocked`]
      : []),
    ...(nextReadyAt === undefined && !isUnread && tasksIn((name) => turns.has(name)) > 0
      ? ['a lane with a task takes turns, and no task starts next']
      : []),
  ]
}

/** Returns how the counts of active tasks of keys, and the blocked lanes, contradict the active tasks. */
function limitViolations(
  scan: Pick<LaneScan, 'limits' | 'counted' | 'active' | 'throttled'>,
  { turns, blocked, timed, waitsForKey, hasTicket }: Lanes,
  before: Map<string, number> | undefined,
): string[] {
  const limits = mapOf(scan.limits)
  const counted = mapOf(scan.counted)
  const found: string[] = []
  const active = new Map<string, number>()
  for (const lane of Object.values(scan.active)) {
    const { key } = split(lane.slice(lane.indexOf(' ') + 1))
    if (key !== '') active.set(key, (active.get(key) ?? 0) + 1)
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
  for (const key of before?.keys() ?? []) if (!key.startsWith(LIMITER)) before?.delete(key)
  for (const [key, count] of active) before?.set(key, count)
  const unblocked = [...timed].filter((key) => !blocked.has(key))
  if (unblocked.length > 0) found.push(`${unblocked} have a time, but are not blocked`)
  for (const name of blocked) {
    const { key, needs } = split(name)
    if (timed.has(name) || (needs.length > 0 && hasTicket(name) && !waitsForKey(name))) continue
    // The first lane that waits for its key has been woken, and wakes the next one.
    const isNext = waitsForKey(name) && [...turns].some((other) => waitsForKey(other) && split(other).key === key)
    if ((active.get(key) ?? 0) < limitOf(key) && !isNext) found.push(`'${name}' is blocked without need`)
  }
  return found
}

/** Distinguishes limiters from keys. */
const LIMITER = 'limiter '

/** The beginning of the names of limiters that are services (../../store/lua/includes/limits/gates.lua). */
const SERVICE = 'service:'

/** Returns whether this entry of `lane-times` is not that of a lane, but of a service. */
const isService = (name: string): boolean => name.startsWith(NEEDS_MARK + SERVICE) && !name.includes('=')

interface Lanes extends ReturnType<typeof limitersIn> {
  readonly filled: ReadonlySet<string>
  readonly turns: ReadonlySet<string>
  readonly blocked: ReadonlySet<string>
  readonly timed: ReadonlySet<string>
  /** The services that have an entry in `lane-times`. */
  readonly services: ReadonlySet<string>
}

function lanesIn(scan: LaneScan): Lanes {
  const timed = Object.values(scan.timed)
  return {
    ...limitersIn(scan),
    filled: new Set(Object.keys(scan.lanes)),
    turns: new Set(Object.values(scan.turns)),
    blocked: new Set(Object.values(scan.blocked)),
    timed: new Set(timed.filter((name) => !isService(name))),
    services: new Set(timed.flatMap((name) => (isService(name) ? [name.slice(1)] : []))),
  }
}

function split(name: string): { readonly key: string; readonly needs: readonly (readonly [string, number])[] } {
  const at = name.lastIndexOf(NEEDS_MARK)
  if (at === -1) return { key: name, needs: [] }
  const needs = name.slice(at + 1).split(',')
  return {
    key: name.slice(0, at),
    needs: needs.map((need) => [need.slice(0, need.lastIndexOf('=')), Number(need.slice(need.lastIndexOf('=') + 1))]),
  }
}

function limitersIn(scan: Pick<LaneScan, 'capacities' | 'in_use' | 'waited' | 'waiters' | 'active'>) {
  const waiters = new Map(
    Object.entries(scan.waiters).map(([need, flat]) => [
      need,
      [...mapOf(flat)].map(([name, ticket]) => ({ name, ticket: Number(ticket) })),
    ]),
  )
  const numbers = (flat: readonly string[]) => new Map([...mapOf(flat)].map(([name, n]) => [name, Number(n)]))
  const capacities = numbers(scan.capacities)
  const held = new Map<string, number>()
  for (const lane of Object.values(scan.active)) {
    for (const [limiter, amount] of split(lane.slice(lane.indexOf(' ') + 1)).needs) {
      // Nothing is counted for a service.
      if (limiter.startsWith(SERVICE)) continue
      held.set(limiter, (held.get(limiter) ?? 0) + amount)
    }
  }
  const isWaitingFor = (name: string, need: string): boolean =>
    waiters.get(need)?.some((waiter) => waiter.name === name) ?? false
  return {
    capacities,
    held,
    inUse: numbers(scan.in_use),
    waiters,
    waited: Object.values(scan.waited),
    waitsForKey: (name: string) => isWaitingFor(name, `key:${split(name).key}=1`),
    hasTicket: (name: string) => [...waiters.values()].flat().some((waiter) => waiter.name === name),
  }
}

/**
 * Returns how the counts of limiters and the lanes that wait for them contradict the active tasks and the capacities.
 */
function limiterViolations(
  { capacities, held, inUse, waiters, waited, filled, turns, blocked, timed, services, waitsForKey, hasTicket }: Lanes,
  before: Map<string, number> | undefined,
): string[] {
  const found: string[] = []
  const capacityOf = (limiter: string): number => capacities.get(limiter) ?? Number.POSITIVE_INFINITY
  for (const limiter of new Set([...held.keys(), ...inUse.keys()])) {
    const [is, stored] = [held.get(limiter) ?? 0, inUse.get(limiter) ?? 0]
    if (stored !== (capacities.has(limiter) ? is : 0))
      found.push(`${stored} of '${limiter}' are counted, ${is} are held`)
    if (is > capacityOf(limiter) && is > (before?.get(LIMITER + limiter) ?? 0)) {
      found.push(`${is} of the ${capacities.get(limiter)} of '${limiter}' are held`)
    }
  }
  for (const key of before?.keys() ?? []) if (key.startsWith(LIMITER)) before?.delete(key)
  for (const [limiter, count] of held) before?.set(LIMITER + limiter, count)
  if (waited.toSorted().join() !== [...waiters.keys()].toSorted().join()) {
    found.push(`waited-needs names ${waited}, lanes wait for ${[...waiters.keys()]}`)
  }
  for (const [need, lanes] of waiters) {
    for (const { name } of lanes) {
      if (!blocked.has(name) && !turns.has(name))
        found.push(`'${name}' has a ticket for ${need}, but waits for nothing`)
    }
  }
  /** The lanes that wait for a limiter and could ever start, in the order of their tickets. */
  const queueFor = (limiter: string): readonly string[] =>
    [...waiters]
      .filter(([need]) => need.slice(0, need.lastIndexOf('=')) === limiter)
      .filter(([need]) => Number(need.slice(need.lastIndexOf('=') + 1)) <= capacityOf(limiter))
      .flatMap(([, lanes]) => lanes)
      .toSorted((one, other) => one.ticket - other.ticket || (one.name < other.name ? -1 : 1))
      .map(({ name }) => name)
  const isRefused = (name: string, [limiter, amount]: readonly [string, number]): boolean => {
    const first = queueFor(limiter)[0]
    const isBehind = first !== undefined && first !== name
    return isBehind || services.has(limiter) || amount + (held.get(limiter) ?? 0) > capacityOf(limiter)
  }
  for (const name of blocked) {
    const { needs } = split(name)
    if (timed.has(name) || waitsForKey(name) || needs.length === 0) continue
    if (!filled.has(name)) found.push(`'${name}' has no task, but is blocked`)
    if (!hasTicket(name)) found.push(`'${name}' is blocked without a ticket`)
    const isAside = needs.some(([limiter, amount]) => amount > capacityOf(limiter))
    // The next fetches let all lanes of such a service take turns again.
    const firstAt = needs.filter(([limiter]) => !services.has(limiter) && queueFor(limiter)[0] === name)
    if (isAside && firstAt.length > 0) found.push(`'${name}' can never start, but others wait behind it for ${firstAt}`)
    if (!needs.some((need) => isRefused(name, need))) found.push(`'${name}' is blocked without need`)
  }
  return found
}

/** An empty Lua table becomes an empty object. */
function mapOf(flat: readonly string[]): ReadonlyMap<string, string> {
  return new Map(pairsOf(Object.values(flat)))
}
