// The registry of workers. With every heartbeat, a worker stores its status and receives the commands addressed to it in reply.
import type { Log } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { type Command, FORGOTTEN_AFTER_MS, type RegisteredWorker, type WorkerStatus } from '@bullpen/engine/internal'
import type { ChainableCommander, Redis } from 'ioredis'
import type { FleetKeys } from '../keys.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { LUA_TIME } from './lua.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

/** The maximum number of commands per reply. The rest follow with the next heartbeat, once these have been answered. */
const COMMANDS_PER_REPLY = 100

/** The Lua function `forget(base, worker, now)` removes a worker and answers its pending commands with `gone`. */
const FORGET = `
local function forget(base, worker, now)
  local inbox = base .. 'inbox:' .. worker
  for _, id in ipairs(redis.call('ZRANGE', inbox, 0, -1)) do
    local command = base .. 'command:' .. id
    if redis.call('HGET', command, 'answer:' .. worker) == 'pending' then
      redis.call('HSET', command, 'answer:' .. worker, '{"outcome":"gone","at":' .. whole(now) .. '}')
      redis.call('PUBLISH', base .. 'answers', id)
    end
  end
  redis.call('DEL', inbox, base .. 'worker:' .. worker)
  redis.call('ZREM', base .. 'heartbeats', worker)
end
`

/**
 * KEYS: heartbeats, the worker, its inbox, the unapplied commands. ARGV: base, worker, status, slots, the silence after which
 * a worker is forgotten (ms), the maximum number of commands. Returns the id, spec, author and time of each command in the
 * inbox, oldest first, and the ids of up to ten commands whose queue settings may not have been applied.
 */
const HEARTBEAT = `${LUA_TIME}${FORGET}
local base, worker, silence = ARGV[1], ARGV[2], tonumber(ARGV[5])
local now = millis()
redis.call('HSET', KEYS[2], 'status', ARGV[3], 'slots', ARGV[4])
redis.call('PEXPIRE', KEYS[2], silence)
redis.call('ZADD', KEYS[1], whole(now), worker)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now - silence), 'LIMIT', 0, 20)) do
  forget(base, silent, now)
end
local commands = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, tonumber(ARGV[6]) - 1)) do
  local command = redis.call('HMGET', base .. 'command:' .. id, 'spec', 'by', 'at')
  if command[1] then
    for _, value in ipairs({ id, command[1], command[2], command[3] }) do commands[#commands + 1] = value end
  else
    redis.call('ZREM', KEYS[3], id)
  end
end
return { commands, redis.call('ZRANGE', KEYS[4], 0, 9) }
`

/** KEYS: heartbeats. ARGV: base, worker. Returns nothing. */
const LEAVE = `${LUA_TIME}${FORGET}
forget(ARGV[1], ARGV[2], millis())
`

/**
 * KEYS: heartbeats. ARGV: base, the silence after which a worker is forgotten (ms), 'slots' or ''. Returns the time and then, for
 * each worker, its last heartbeat, its status, and its slots if they were requested.
 */
const WORKERS = `${LUA_TIME}
local now = millis()
local found = { whole(now) }
local heartbeats = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(now - tonumber(ARGV[2])), '+inf', 'WITHSCORES')
for i = 1, #heartbeats, 2 do
  local status = redis.call('HMGET', ARGV[1] .. 'worker:' .. heartbeats[i], 'status', ARGV[3])
  if status[1] then
    found[#found + 1] = heartbeats[i + 1]
    found[#found + 1] = status[1]
    found[#found + 1] = status[2] or ''
  end
end
return found
`

/** Adds one Redis command to the pipeline, which stores the status and fetches the commands for the worker. */
export function addHeartbeat(pipeline: ChainableCommander, keys: FleetKeys, workerStatus: WorkerStatus): void {
  const { status, slots } = encodeStatus(workerStatus)
  const { worker } = workerStatus
  const names = [keys.heartbeats, keys.worker(worker), keys.inbox(worker), keys.unapplied]
  const args = [keys.base, worker, status, slots, FORGOTTEN_AFTER_MS, COMMANDS_PER_REPLY]
  pipeline.eval(HEARTBEAT, names.length, ...names, ...args)
}

/** Decodes the reply. `unapplied` holds the ids of commands whose queue settings may not have been applied. */
export function decodeHeartbeatReply(answer: unknown): {
  readonly commands: readonly Command[]
  readonly unapplied: readonly string[]
} {
  const [rows, unapplied] = answer as [string[], string[]]
  const commands = Array.from({ length: rows.length / 4 }, (_, i) => {
    const [id = '', spec = '', by = '', at] = rows.slice(4 * i, 4 * i + 4)
    return { id, spec: JSON.parse(spec) as CommandSpec, by, at: Number(at) }
  })
  return { commands, unapplied }
}

/** Removes a worker from the registry. Takes one round trip. */
export async function leaveFleet(redis: Redis, keys: FleetKeys, worker: string): Promise<void> {
  await redis.eval(LEAVE, 1, keys.heartbeats, keys.base, worker)
}

export interface RegisteredWorkers {
  readonly now: number
  readonly workers: readonly RegisteredWorker[]
}

/**
 * Reads all registered workers in one round trip. Without 'slots', their pools have no slots, which is enough to know which
 * workers a command concerns.
 */
export async function readWorkers(
  redis: Redis,
  keys: FleetKeys,
  slots: 'slots' | '',
  log: Log,
): Promise<RegisteredWorkers> {
  const answer = await redis.eval(WORKERS, 1, keys.heartbeats, keys.base, FORGOTTEN_AFTER_MS, slots)
  const [now, ...rows] = answer as string[]
  const logUnreadable = throttledLog((err: unknown) => log.warn({ err }, "a worker's status could not be read"))
  const workers: RegisteredWorker[] = []
  for (let i = 0; i < rows.length; i += 3) {
    const [seenAt, status = '', slotRows] = rows.slice(i, i + 3)
    try {
      workers.push({ ...decodeStatus(status, slotRows || undefined), seenAt: Number(seenAt) })
    } catch (err) {
      logUnreadable(err)
    }
  }
  return { now: Number(now), workers }
}
