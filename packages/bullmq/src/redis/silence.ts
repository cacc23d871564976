// Closes a connection to a server that owes a reply and sends nothing any more, so that the client connects again. The network may lose
// a connection without closing it, and a server that hangs keeps its connections open. Commands on such a connection would wait forever.
//
// All connections of this thread are checked together, from what they have received in all, so that a command costs nothing:
//
//   - A connection is silent if nothing has arrived for `afterMs` while a reply was due. A command that blocks in Redis is due when its
//     time has passed.
//   - An idle connection can't be silent. A subscriber never sends a command, so it sends a ping when it has received nothing for 5 s.
//   - If one connection to a server is silent, so are probably the others on which nothing has arrived lately. They are closed with it.
//     A worker's blocking fetch, which may wait for 10 s, therefore ends as soon as a heartbeat of the process gets no reply.
//
// The time for which this process's event loop was blocked does not count, and a check follows the reading of the sockets: a reply that
// has arrived during an event-loop stall is read first.
import { Command, type Redis } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { withDuplicates } from '../scripts/with-duplicates.ts'

/** How long a server may owe a reply without sending anything, in ms, including the time between two checks. */
const SILENT_AFTER_MS = 4_000
/** How long a server may owe the reply to a command after the time for which the command blocks, in ms. */
const BLOCKED_GRACE_MS = 1_500
/** A connection that has received nothing for this long is closed if another one to the same server is silent, in ms. */
const QUIET_MS = 2_500
const PING_EVERY_MS = 5_000
const CHECK_EVERY_MS = 500

export interface SilenceOptions {
  /** How long a server may owe a reply without sending anything, in ms. Defaults to 4,000. */
  readonly afterMs?: number
  /** Whether an idle connection sends a PING every 5 s. Defaults to false. */
  readonly pings?: boolean
}

interface Watched {
  readonly redis: Redis
  readonly stream: Redis['stream']
  readonly options: SilenceOptions
  received: number
  /** For how long nothing has arrived, in ms. */
  quietMs: number
  /** For how much of that time a reply was due. */
  dueMs: number
}

/** The connections of this thread that are open or being opened. */
const open = new Map<Redis, Watched>()
let timer: NodeJS.Timeout | undefined
let checkedAt = 0

/** Watches all connections of a client, and of every client that it is duplicated to, until they are closed. */
export function closeWhenSilent<Client extends Commander>(client: Client, options: SilenceOptions = {}): Client {
  return withDuplicates(client, (each) => {
    if (each.isCluster) each.on('+node', (node: Redis) => follow(node, options))
    else follow(each as Redis, options)
  })
}

function follow(redis: Redis, options: SilenceOptions): void {
  redis.on('connect', () => {
    const { stream } = redis
    open.set(redis, { redis, stream, options, received: stream.bytesRead, quietMs: 0, dueMs: 0 })
    if (timer !== undefined) return
    checkedAt = performance.now()
    // An immediate runs after the sockets have been read.
    timer = setInterval(() => setImmediate(check), CHECK_EVERY_MS).unref()
  })
  redis.on('close', () => {
    open.delete(redis)
    if (open.size > 0) return
    clearInterval(timer)
    timer = undefined
  })
}

function check(): void {
  const now = performance.now()
  const passedMs = Math.min(now - checkedAt, 2 * CHECK_EVERY_MS)
  checkedAt = now
  const silentServers = new Set<string>()
  for (const each of open.values()) {
    note(each, passedMs)
    if (isSilent(each)) silentServers.add(serverOf(each))
    else pingIfIdle(each)
  }
  for (const each of open.values()) {
    if (isSilent(each) || (each.quietMs >= QUIET_MS && silentServers.has(serverOf(each)))) close(each)
  }
}

function note(each: Watched, passedMs: number): void {
  const received = each.stream.bytesRead
  const hasReceived = received !== each.received
  each.received = received
  each.quietMs = hasReceived ? 0 : each.quietMs + passedMs
  each.dueMs = hasReceived || each.redis.commandQueue.length === 0 ? 0 : each.dueMs + passedMs
}

function isSilent({ redis, options: { afterMs = SILENT_AFTER_MS }, dueMs }: Watched): boolean {
  if (dueMs < afterMs) return false
  const next = redis.commandQueue.peekFront()?.command
  return dueMs >= Math.max(afterMs, blockingMs(next) + BLOCKED_GRACE_MS)
}

/** Returns for how long a command may block in Redis, in ms. Redis replies to the commands after it later. */
function blockingMs(command: unknown): number {
  if (!(command instanceof Command) || !Command.checkFlag('BLOCKING_COMMANDS', command.name)) return 0
  return command.extractBlockingTimeout() ?? 0
}

function pingIfIdle({ redis, options, quietMs }: Watched): void {
  const isIdle = redis.status === 'ready' && redis.commandQueue.length === 0
  // If the connection is lost, the client reports it.
  if (options.pings && isIdle && quietMs >= PING_EVERY_MS) redis.ping().catch(() => {})
}

function close({ stream, quietMs }: Watched): void {
  const error = new Error(`Redis sent nothing for ${Math.round(quietMs)} ms`)
  stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }))
}

const serverOf = ({ redis: { options } }: Watched): string => `${options.host}:${options.port}`
