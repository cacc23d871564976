// Commands to the fleet. They are stored for a week, together with the answer of each worker.
import { BullpenError } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import {
  type Command,
  type CommandAnswer,
  type CommandRecord,
  isAlive,
  type RegisteredWorker,
  SILENT_AFTER_MS,
} from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import type { FleetKeys } from '../keys.ts'
import { LUA_TIME } from './lua.ts'
import { type StoredCommand, targetQueue } from './queue-settings.ts'
import type { RegisteredWorkers } from './registry.ts'

const KEEP_MS = 7 * 86_400_000
const KEEP_AT_MOST = 10_000

/**
 * KEYS: the command, all commands, the unapplied commands. ARGV: base, id, spec, author, '1' if the command changes the settings
 * of a queue, how long to keep it (ms), how many commands to keep, and the workers that it concerns. Returns the command's
 * sequence number and time, or nil if the id was used with another spec.
 */
const STORE = `${LUA_TIME}
local base, id, keepMs, keep = ARGV[1], ARGV[2], tonumber(ARGV[6]), tonumber(ARGV[7])
local stored = redis.call('HMGET', KEYS[1], 'spec', 'sequence', 'at')
if stored[1] then
  if stored[1] ~= ARGV[3] then return false end
  return { stored[2], stored[3] }
end
local now = micros()
local newest = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local sequence = math.max(now, tonumber(newest[2] or '0') + 1)
local at = whole(math.floor(now / 1000))
redis.call('HSET', KEYS[1], 'spec', ARGV[3], 'by', ARGV[4], 'at', at, 'sequence', whole(sequence))
for i = 8, #ARGV do
  local inbox = base .. 'inbox:' .. ARGV[i]
  redis.call('HSET', KEYS[1], 'answer:' .. ARGV[i], 'pending')
  redis.call('ZADD', inbox, whole(sequence), id)
  redis.call('PEXPIRE', inbox, keepMs)
end
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('ZADD', KEYS[2], whole(sequence), id)
if ARGV[5] == '1' then redis.call('ZADD', KEYS[3], whole(sequence), id) end
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now - keepMs * 1000), 'LIMIT', 0, 100)
local over = redis.call('ZCARD', KEYS[2]) - keep
if over > 0 then
  for _, more in ipairs(redis.call('ZRANGE', KEYS[2], 0, math.min(over, 100) - 1)) do old[#old + 1] = more end
end
for _, each in ipairs(old) do
  redis.call('ZREM', KEYS[2], each)
  redis.call('ZREM', KEYS[3], each)
  redis.call('DEL', base .. 'command:' .. each)
end
return { whole(sequence), at }
`

/**
 * KEYS: the command, the worker's inbox. ARGV: base, id, worker, outcome and detail as JSON without the closing brace. Only the
 * first answer of a worker is stored. Returns nothing.
 */
const ANSWER = `${LUA_TIME}
redis.call('ZREM', KEYS[2], ARGV[2])
if redis.call('HGET', KEYS[1], 'answer:' .. ARGV[3]) ~= 'pending' then return end
redis.call('HSET', KEYS[1], 'answer:' .. ARGV[3], ARGV[4] .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', ARGV[1] .. 'answers', ARGV[2])
`

/**
 * KEYS: all commands, heartbeats. ARGV: base, and either an id or '' and how many of the newest commands to read. Returns the
 * time and then, for each command, its id, its fields, and the last heartbeat of each worker whose answer is pending.
 */
const READ = `${LUA_TIME}
local ids = { ARGV[2] }
if ARGV[2] == '' then ids = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[3]) - 1) end
local found = { whole(millis()) }
for _, id in ipairs(ids) do
  local fields = redis.call('HGETALL', ARGV[1] .. 'command:' .. id)
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      if fields[i + 1] == 'pending' then
        local worker = string.match(fields[i], '^answer:(.*)$')
        if worker then
          seen[#seen + 1] = worker
          seen[#seen + 1] = redis.call('ZSCORE', KEYS[2], worker) or '0'
        end
      end
    end
    found[#found + 1] = { id, fields, seen }
  end
end
return found
`

export type NewCommand = Omit<Command, 'at'>

/**
 * Returns the workers that receive a command: the worker that the command names, or every live worker with a pool on its queue.
 * A resize of all workers also goes to silent workers, because the queue has no setting that would tell a worker that comes back.
 * `now` is the time of Redis's clock.
 */
export function recipients(spec: CommandSpec, workers: readonly RegisteredWorker[], now: number): readonly string[] {
  // The limits of the whole fleet are settings of the queue, so no worker has to act.
  if (spec.action === 'limit') return []
  const { queue, worker } = spec
  return workers
    .filter((each) => isAlive(each, now) || (spec.action === 'resize' && worker === undefined))
    .filter((each) => worker === undefined || each.worker === worker)
    .filter((each) => worker !== undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.worker)
}

/**
 * Returns the workers that a command concerns.
 *
 * @throws BullpenError `worker_not_found` if the command names a worker that is unknown or silent.
 */
export function recipientsOf({ spec }: NewCommand, { workers, now }: RegisteredWorkers): readonly string[] {
  const found = recipients(spec, workers, now)
  if (found.length === 0 && spec.action !== 'limit' && spec.worker !== undefined) {
    throw new BullpenError('worker_not_found', `no live worker has the id '${spec.worker}'; GET /v1/workers lists them`)
  }
  return found
}

/**
 * Stores a command. Atomic, and idempotent for the same id and spec. Takes one round trip.
 *
 * @throws BullpenError `command_id_reused` if the id was used with another spec.
 */
export async function storeCommand(
  redis: Redis,
  keys: FleetKeys,
  { id, spec, by }: NewCommand,
  workers: readonly string[],
): Promise<StoredCommand> {
  const names = [keys.command(id), keys.commands, keys.unapplied]
  const changesSettings = targetQueue(spec) === undefined ? '' : '1'
  const text = JSON.stringify(sorted(spec))
  const answer = await redis.eval(
    STORE,
    names.length,
    ...names,
    keys.base,
    id,
    text,
    by,
    changesSettings,
    KEEP_MS,
    KEEP_AT_MOST,
    ...workers,
  )
  if (answer === null) {
    throw new BullpenError('command_id_reused', `command id '${id}' was already used for another command; use a new id`)
  }
  const [sequence = '', at] = answer as string[]
  return { id, spec, sequence, at: Number(at) }
}

/** Stores a worker's answer. Idempotent: only the first answer of a worker is stored. Takes one round trip. */
export async function storeAnswer(
  redis: Redis,
  keys: FleetKeys,
  command: string,
  { worker, outcome, detail }: CommandAnswer,
): Promise<void> {
  const names = [keys.command(command), keys.inbox(worker)]
  const text = JSON.stringify({ outcome, detail }).slice(0, -1)
  await redis.eval(ANSWER, names.length, ...names, keys.base, command, worker, text)
}

/** Reads commands, newest first. Takes one round trip. */
export async function readCommands(
  redis: Redis,
  keys: FleetKeys,
  which: { readonly id: string } | { readonly newest: number },
): Promise<readonly (CommandRecord & StoredCommand)[]> {
  const [id, newest] = 'id' in which ? [which.id, 0] : ['', which.newest]
  const answer = await redis.eval(READ, 2, keys.commands, keys.heartbeats, keys.base, id, newest)
  const [now, ...found] = answer as [string, ...[string, string[], string[]][]]
  return found.map(([each, fields, seen]) => readCommand(each, pairs(fields), pairs(seen), Number(now)))
}

function readCommand(
  id: string,
  fields: ReadonlyMap<string, string>,
  seen: ReadonlyMap<string, string>,
  now: number,
): CommandRecord & StoredCommand {
  const answers = [...fields]
    .filter(([name]) => name.startsWith('answer:'))
    .map(([name, stored]) => readAnswer(name.slice('answer:'.length), stored, seen, now))
    .sort((one, other) => (one.worker < other.worker ? -1 : 1))
  return {
    id,
    spec: JSON.parse(fields.get('spec') ?? '') as CommandSpec,
    by: fields.get('by') ?? '',
    at: Number(fields.get('at')),
    sequence: fields.get('sequence') ?? '',
    answers,
  }
}

/** A silent worker is shown as gone. Until it is forgotten, however, it may still come back and answer. */
function readAnswer(worker: string, stored: string, seen: ReadonlyMap<string, string>, now: number): CommandAnswer {
  if (stored !== 'pending') return { worker, ...(JSON.parse(stored) as Omit<CommandAnswer, 'worker'>) }
  const silentAt = Number(seen.get(worker) ?? 0) + SILENT_AFTER_MS
  return silentAt < now ? { worker, outcome: 'gone', at: silentAt } : { worker, outcome: 'pending' }
}

function pairs(flat: readonly string[]): Map<string, string> {
  return new Map(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']))
}

/** Sorts the fields, so that equal specs have the same text. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
