// Finds risks in how a server is set up for BullMQ.
import { infoField, infoNumber } from '../redis/server/server-info.ts'
import type { BullmqServerFacts } from './facts.ts'
import { megabytes, type Risk } from './risk.ts'

/** BullMQ refuses to start on a Redis before 5.0, and warns before 6.2. */
const OLDEST = [5, 0] as const
const RECOMMENDED = [6, 2] as const
/** The share of the memory, and of the connections, above which there is little room. */
const LITTLE_ROOM = 0.8

type ExamineServer = (info: string, facts: BullmqServerFacts) => readonly Risk[]

/** Examines a server. Returns undefined if it does not permit INFO. */
const onInfo =
  (examine: ExamineServer) =>
  (facts: BullmqServerFacts): readonly Risk[] | undefined =>
    facts.description.info === undefined ? undefined : examine(facts.description.info, facts)

export const version = onInfo((info) => {
  const text = infoField(info, 'redis_version')
  if (text === undefined || infoField(info, 'valkey_version') !== undefined) return []
  const [major = 0, minor = 0] = text.split('.').map(Number)
  const isBefore = ([atLeast, andMinor]: readonly [number, number]): boolean =>
    major < atLeast || (major === atLeast && minor < andMinor)
  if (!isBefore(RECOMMENDED)) return []
  return [{ severity: isBefore(OLDEST) ? 'error' : 'warning', problem: `the server is Redis ${text}` }]
})

export const eviction = onInfo((info) => {
  const policy = infoField(info, 'maxmemory_policy')
  if (policy === undefined || policy === 'noeviction') return []
  const evicted = infoNumber(info, 'evicted_keys') ?? 0
  const already = evicted === 0 ? '' : `, and has evicted ${evicted} keys since it started`
  return [{ severity: 'error', problem: `Redis has maxmemory-policy ${policy}${already}` }]
})

export const persistence = onInfo((info, { save }) => {
  if (infoField(info, 'aof_enabled') === '1') return []
  if (save === '') return [{ severity: 'error', problem: 'Redis has neither an append-only file nor snapshots' }]
  const changes = infoNumber(info, 'rdb_changes_since_last_save')
  const lost = changes === undefined ? '' : `; a restart now would lose ${changes} changes`
  return [{ severity: 'warning', problem: `Redis has no append-only file, only snapshots${lost}` }]
})

export const failedWrites = onInfo((info) =>
  ['aof_last_write_status', 'aof_last_bgrewrite_status', 'rdb_last_bgsave_status']
    .filter((field) => infoField(info, field) === 'err')
    .map((field) => ({ severity: 'error', problem: `Redis reports ${field}:err` })),
)

export const memory = onInfo((info) => {
  const [used, limit] = [infoNumber(info, 'used_memory'), infoNumber(info, 'maxmemory')]
  if (used === undefined || limit === undefined) return []
  if (limit === 0) {
    return [{ severity: 'warning', problem: `Redis uses ${megabytes(used)} and has no maxmemory` }]
  }
  if (used < limit * LITTLE_ROOM) return []
  const share = Math.round((100 * used) / limit)
  return [
    { severity: 'error', problem: `Redis uses ${share}% of its memory (${megabytes(used)} of ${megabytes(limit)})` },
  ]
})

export const connections = onInfo((info) => {
  const [open, max] = [infoNumber(info, 'connected_clients'), infoNumber(info, 'maxclients')]
  if (open === undefined || max === undefined || open < max * LITTLE_ROOM) return []
  return [{ severity: 'warning', problem: `${open} of the ${max} connections that Redis permits are open` }]
})

export const hashTags = ({ scattered }: BullmqServerFacts): readonly Risk[] =>
  scattered.map((queue) => ({
    severity: 'error',
    problem: `the keys of ${queue} are on several nodes, because neither its prefix nor its name has a hash tag`,
  }))
