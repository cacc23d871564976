// Compares what Bullpen says about a queue with a scan of all of the queue's keys.
import { isDeepStrictEqual } from 'node:util'
import type { TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { taskBytes } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../../keys.ts'
import { partOf, repairIndex } from '../status/index-repair.ts'
import { PARTS } from '../status/status-index.ts'

/** BullMQ's structures that hold jobs, and the statuses of those that are not divided. */
const UNDIVIDED = {
  wait: 'waiting',
  prioritized: 'waiting',
  'in lanes': 'waiting',
  'waiting-children': 'waiting',
  active: 'active',
  completed: 'completed',
} as const satisfies Record<string, TaskStatus>

const STRUCTURES = [...Object.keys(UNDIVIDED), ...Object.keys(PARTS), ...Object.values(PARTS).flat(), 'paused']

/**
 * Returns, as JSON, the members and scores of each structure, the fields of each job, and the totals. The scan is unbounded, so
 * only tests may use it.
 */
export const SCAN = `
local base, found = ARGV[1], { structures = {}, jobs = {}, totals = {}, apiKeyTasks = {}, outboxBytes = 0, fingerprints = {} }
for _, name in ipairs({ '${STRUCTURES.join("', '")}' }) do
  local key = base .. name
  local kind = redis.call('TYPE', key).ok
  local members = {}
  if kind == 'list' then
    for _, id in ipairs(redis.call('LRANGE', key, 0, -1)) do members[#members + 1] = { id, '' } end
  elseif kind == 'zset' then
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for at = 1, #all, 2 do members[#members + 1] = { all[at], all[at + 1] } end
  end
  if #members > 0 then found.structures[name] = members end
end
local prefix = string.gsub(base, '[%[%]*?\\\\]', '\\\\%0')
local in_lanes = {}
local fields = { 'name', 'atm', 'stacktrace', 'data', 'atEnd', 'fingerprint', 'followUps', 'compensations', 'timestamp', 'finishedOn', 'ats', 'processedOn' }
for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
  local name = string.sub(key, #base + 1)
  local kind = redis.call('TYPE', key).ok
  if string.find(name, '^lane:') then
    for _, id in ipairs(redis.call('LRANGE', key, 0, -1)) do in_lanes[#in_lanes + 1] = { id, '' } end
  elseif string.find(name, '^lane%-priorities:') then
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do in_lanes[#in_lanes + 1] = { id, '' } end
  elseif string.find(name, '^fingerprint:') then
    local fingerprint = string.sub(name, #'fingerprint:' + 1)
    local is_known = redis.call('HEXISTS', base .. 'fingerprints', fingerprint)
    found.fingerprints[fingerprint] = { is_known, redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') }
  elseif kind == 'hash' then
    local job = redis.call('HMGET', key, unpack(fields))
    if job[9] then
      found.jobs[name] = { name = job[1], attemptsMade = job[2], stacktrace = job[3],
        dataBytes = #job[4] + #(job[7] or '') + #(job[8] or ''), apiKeyName = job[5] and string.sub(job[5], 2), fingerprint = job[6],
        finishedOn = job[10], starts = job[11], processedOn = job[12] }
    end
  end
end
if #in_lanes > 0 then found.structures['in lanes'] = in_lanes end
found.kinds = redis.call('HLEN', base .. 'fingerprints')
for _, entry in ipairs(redis.call('XRANGE', base .. 'outbox', '-', '+')) do found.outboxBytes = found.outboxBytes + #entry[2][2] end
for _, name in ipairs({ 'accepted', 'removed', 'retried', 'bytes', 'outboxBytes', 'drift' }) do
  found.totals[name] = tonumber(redis.call('HGET', base .. 'totals', name) or 0)
end
found.rules = redis.call('HLEN', base .. 'cancel-rules')
local counts = redis.call('HGETALL', base .. 'api-key-tasks')
for i = 1, #counts, 2 do found.apiKeyTasks[counts[i]] = tonumber(counts[i + 1]) end
return cjson.encode(found)
`

type Members = readonly (readonly [id: string, score: string])[]

interface ScannedJob {
  readonly name: string | false
  readonly attemptsMade: string | false
  readonly stacktrace: string | false
  /** The size of the stored string and of the follow-ups. */
  readonly dataBytes: number
  readonly apiKeyName: string | false
  readonly fingerprint: string | false
  readonly finishedOn: string | false
  readonly starts: string | false
  readonly processedOn: string | false
}

export interface Scan {
  readonly structures: Readonly<Record<string, Members>>
  readonly jobs: Readonly<Record<string, ScannedJob>>
  /** By fingerprint: whether the fingerprint is known (1), and the members of its set, each followed by its score. */
  readonly fingerprints: Readonly<Record<string, readonly [isKnown: number, members: readonly string[]]>>
  /** The number of known fingerprints. */
  readonly kinds: number
  readonly rules: number
  /** The size of the entries in the outbox. */
  readonly outboxBytes: number
  readonly totals: Readonly<Record<string, number>>
  /** An empty Lua table becomes an empty array. */
  readonly apiKeyTasks: Readonly<Record<string, number>>
}

const scanOf = async (redis: Redis, { base }: QueueKeys): Promise<Scan> =>
  JSON.parse((await redis.eval(SCAN, 0, base)) as string) as Scan

/**
 * Returns what is wrong: a job in no place or in several, a count or listing that differs from the scan, a page that is not full,
 * a task in the wrong part, a conservation law that does not hold, a wrong sum of bytes, and what a repair would do. If the
 * leader changes the queue in the meantime, everything is read again.
 */
export async function violations(
  redis: Redis,
  keys: QueueKeys,
  broker: Broker,
  queue: string,
  /** Jobs that a plain processor has delayed. Their own fields do not say that they are scheduled. */
  delayedByPlain: ReadonlySet<string>,
): Promise<string[]> {
  for (;;) {
    const scan = await scanOf(redis, keys)
    // A repair would correct the index of fingerprints without counting the tasks, so it is compared first.
    const wrong = wrongFingerprints(scan)
    if (wrong.length > 0 && isDeepStrictEqual(scan, await scanOf(redis, keys))) return wrong
    const found = [...scanViolations(scan, delayedByPlain), ...(await wrongListings(broker, queue, scan))]
    const totals = await broker.totals(queue)
    const drift = await repairIndex(redis, keys)
    if (!isDeepStrictEqual(scan, await scanOf(redis, keys)) && drift === 0) continue
    if (totals.unaccounted !== 0) found.push(`unaccounted: ${JSON.stringify(totals)}`)
    if (drift !== 0 || totals.drift !== 0) found.push(`a repair corrected ${drift}, and the leader ${totals.drift}`)
    return found
  }
}

/** Returns what of this is wrong in the scan itself: places, parts, fingerprints and sums. */
export function scanViolations(scan: Scan, delayedByPlain: ReadonlySet<string>): string[] {
  const found = [...placesOf(scan), ...wrongParts(scan, delayedByPlain), ...wrongFingerprints(scan)]
  const { bytes = 0, outboxBytes = 0 } = scan.totals
  const taken = unfinishedBytes(scan)
  if (bytes !== taken) found.push(`the totals say ${bytes} bytes, and the unfinished tasks take ${taken}`)
  if (scan.outboxBytes !== outboxBytes)
    found.push(`the totals say ${outboxBytes} bytes in the outbox, there are ${scan.outboxBytes}`)
  const [ofKeys, counted] = [unfinishedOfApiKeys(scan), { ...scan.apiKeyTasks }]
  if (!isDeepStrictEqual(counted, ofKeys)) {
    found.push(`API keys have ${JSON.stringify(ofKeys)} unfinished tasks, counted ${JSON.stringify(counted)}`)
  }
  return found
}

const PAGE = 5

/** Returns the counts and the listings that differ from the scan, and the pages that are not full. */
export async function wrongListings(broker: Broker, queue: string, scan: Scan): Promise<string[]> {
  const counts = await broker.counts(queue)
  const expected = statusesOf(scan)
  const found = TASK_STATUSES.map(async (status): Promise<string[]> => {
    const tasks = expected.get(status) ?? []
    const pages = await pagesOf(broker, queue, status)
    const listed = pages.flat().toSorted()
    // A task that a cancel rule matches is not listed any more, and has not been ended yet.
    const isHidden = scan.rules > 0 && (status === 'waiting' || status === 'scheduled' || status === 'retrying')
    return [
      ...(counts[status] === tasks.length ? [] : [`${counts[status]} ${status} are counted, ${tasks.length} exist`]),
      ...(isHidden || isDeepStrictEqual(listed, tasks.toSorted())
        ? []
        : [`${status}: listed are ${listed}, there are ${tasks.toSorted()}`]),
      ...(isHidden || pages.slice(0, -1).every(({ length }) => length === PAGE)
        ? []
        : [`${status} has pages of ${pages.map(({ length }) => length)}`]),
    ]
  })
  return (await Promise.all(found)).flat()
}

async function pagesOf(broker: Broker, queue: string, status: TaskStatus): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await broker.list({ queue, status, limit: PAGE, cursor })
    pages.push(page.tasks.map(({ id }) => id))
    cursor = page.next
  } while (cursor !== undefined)
  return pages
}

/** Returns the bytes of all jobs that have not ended. */
function unfinishedBytes(scan: Scan): number {
  return unfinishedJobs(scan).reduce((sum, { dataBytes }) => sum + taskBytes(dataBytes), 0)
}

/** The number of such jobs by the API key for which they were counted. */
function unfinishedOfApiKeys(scan: Scan): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { apiKeyName } of unfinishedJobs(scan)) {
    if (apiKeyName) counts[apiKeyName] = (counts[apiKeyName] ?? 0) + 1
  }
  return counts
}

function unfinishedJobs(scan: Scan) {
  const ended = new Set(['completed', 'failed'].flatMap((set) => membersOf(scan, set).map(([id]) => id)))
  return Object.entries(scan.jobs).flatMap(([id, job]) => (ended.has(id) ? [] : [job]))
}

export const membersOf = (scan: Scan, structure: string): Members => scan.structures[structure] ?? []

export function statusesOf(scan: Scan): Map<TaskStatus, string[]> {
  const statuses = new Map<TaskStatus, string[]>(TASK_STATUSES.map((status) => [status, []]))
  for (const [place, status] of Object.entries(UNDIVIDED)) {
    statuses.get(status)?.push(...membersOf(scan, place).map(([id]) => id))
  }
  for (const [set, parts] of Object.entries(PARTS)) {
    for (const [id] of membersOf(scan, set)) {
      const part = parts.find((each) => membersOf(scan, each).some(([member]) => member === id))
      if (part !== undefined) statuses.get(part)?.push(id)
    }
  }
  return statuses
}

/** Each job is in exactly one place, and each place has only jobs. */
function placesOf(scan: Scan): string[] {
  const places = [...Object.keys(UNDIVIDED), ...Object.keys(PARTS), 'paused']
  const held = places.flatMap((place) => membersOf(scan, place).map(([id]) => ({ id, place })))
  const found: string[] = []
  for (const id of new Set([...Object.keys(scan.jobs), ...held.map((each) => each.id)])) {
    const at = held.filter((each) => each.id === id).map(({ place }) => place)
    if (at.length !== 1) found.push(`${id} is in ${at.length === 0 ? 'no place' : at.join(' and ')}`)
    if (scan.jobs[id] === undefined) found.push(`${id} is in ${at} and has no hash`)
  }
  return found
}

/** Each dead task is in the set of the fingerprint that its own field names, with the score of its death, and in no other set. */
function wrongFingerprints(scan: Scan): string[] {
  const indexed = Object.entries(scan.fingerprints).flatMap(([fingerprint, [, members]]) =>
    Array.from({ length: members.length / 2 }, (_, i) => `${members[2 * i]} ${fingerprint} ${members[2 * i + 1]}`),
  )
  const dead = membersOf(scan, 'dead').map(
    ([id, score]) => `${id} ${(scan.jobs[id]?.fingerprint || 'none').split(' ')[0]} ${score}`,
  )
  const named = Object.entries(scan.jobs).flatMap(([id, { fingerprint }]) => (fingerprint === false ? [] : [id]))
  const found: string[] = []
  if (!isDeepStrictEqual(indexed.toSorted(), dead.toSorted())) found.push(`by fingerprint ${indexed}, dead are ${dead}`)
  if (named.length !== dead.length) found.push(`${named} have a fingerprint, dead are ${dead}`)
  const sets = Object.values(scan.fingerprints)
  if (sets.some(([isKnown]) => isKnown !== 1) || scan.kinds !== sets.length) {
    found.push(`${scan.kinds} fingerprints are known, ${sets.length} have tasks`)
  }
  return found
}

/** Each member of a divided set is in one part, with its score, and in the part that its own fields say. */
function wrongParts(scan: Scan, delayedByPlain: ReadonlySet<string>): string[] {
  const found: string[] = []
  for (const set of ['delayed', 'failed'] as const) {
    const members = new Map(membersOf(scan, set))
    for (const [id, score] of members) {
      const holders = PARTS[set].filter((part) => membersOf(scan, part).some(([member]) => member === id))
      const scores = holders.flatMap((part) =>
        membersOf(scan, part)
          .filter(([member]) => member === id)
          .map(([, s]) => s),
      )
      if (holders.length !== 1 || scores[0] !== score)
        found.push(`${id} of ${set} at ${score} is in ${holders} at ${scores}`)
      const { attemptsMade, stacktrace } = scan.jobs[id] ?? { attemptsMade: false, stacktrace: false }
      const part = partOf(set, Number(attemptsMade || 0), stacktrace || '[]')
      if (holders[0] !== part && !delayedByPlain.has(id)) found.push(`${id} is ${holders}, and its fields say ${part}`)
    }
    for (const part of PARTS[set]) {
      for (const [id] of membersOf(scan, part)) if (!members.has(id)) found.push(`${id} is ${part} and not in ${set}`)
    }
  }
  return found
}
