// Closes a connection to a server that owes a reply and sends nothing any more, so that the client connects again. The network may lose
// a connection without closing it, and a server that hangs keeps its connections open. Commands on such a connection would wait forever.
//
// All connections of this thread are checked together, from what they have received in all, so that a command costs nothing:
//
//   - A connection is silent if nothing has arrived for `afterMs` while a reply was due. The reply to a command that blocks in Redis is due
//     when the command's time has passed.
//   - Redis replies in turn. If it has sent something to another connection since a reply was due, only this connection is silent. The time
//     for which it was idle then counts too: it is closed `afterMs` after the last bytes that arrived, but not before the reply is 1 s
//     late, and not while this process is still sending the command.
//   - An idle connection owes no reply, so its silence would not be noticed. A producer that has received nothing for 3 s therefore sends a
//     PING. So does a subscriber after 1.5 s, which is rare, because the leader sends a message each second. A command that waits in Redis
//     waits for at most 3.4 s at a time. Only a consumer's connection for commands may be idle for longer: PINGs over it would double again
//     what an idle queue sends, and nothing waits for it.
//   - If one connection to a server is silent, so are probably the others on which nothing has arrived lately. They are closed with it.
//
// The time for which this process's event loop was blocked does not count, and a check follows the reading of the sockets: a reply that
// has arrived during an event-loop stall is read first.
import { Command, type Redis } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { withDuplicates } from '../scripts/with-duplicates.ts'

/** How long a server may owe a reply without sending anything, in ms, including the time between two checks. */
const SILENT_AFTER_MS = 4_000
/** A reply that is less late than this never closes a connection, in ms. */
const GRACE_MS = 1_000
/** A connection that has received nothing for this long is closed if another one to the same server is silent, in ms. */
const QUIET_MS = 2_500
const CHECK_EVERY_MS = 250

export interface SilenceOptions {
  /** How long a server may owe a reply without sending anything, in ms. Defaults to 4,000. */
  readonly afterMs?: number
  /** An idle connection that has received nothing for this long sends a PING, in ms. By default, none does. */
  readonly pingAfterMs?: number
}

/** A producer notices within 5 s that only its own connection is silent: two checks, 3 s until the PING, and 1 s without a reply. */
export const OF_PRODUCER: SilenceOptions = { pingAfterMs: 3_000 }

/** A subscriber notices within 5 s that nothing arrives any more: two checks, 1.5 s until the PING, and 2.5 s without a reply. */
export const OF_SUBSCRIBER: SilenceOptions = { afterMs: 2_500, pingAfterMs: 1_500 }

interface Watched {
  readonly redis: Redis
  readonly stream: Redis['stream']
  readonly options: SilenceOptions
  received: number
  /** For how long nothing has arrived, in ms. */
  quietMs: number
  /** Whether a reply was due at the last check. */
  isDue: boolean
  /** For how much of `quietMs` a reply was due, counted from the first check that found it due. */
  dueMs: number
}

/** When connections are checked. */
export interface CheckTimes {
  /** Returns the time in ms, on a monotonic clock. */
  readonly now: () => number
  /** Calls `run` every `ms` until the returned function is called. What has arrived is read before. */
  readonly every: (ms: number, run: () => void) => () => void
}

export interface SilenceWatch {
  /** Watches a connection from each time that it is opened until it is closed. */
  follow(redis: Redis, options: SilenceOptions): void
}

const ofThread = createSilenceWatch({
  now: () => performance.now(),
  every(ms, run) {
    // An immediate runs after the sockets have been read.
    const timer = setInterval(() => setImmediate(run), ms).unref()
    return () => clearInterval(timer)
  },
})

/** Watches all connections of a client, and of every client that it is duplicated to, until they are closed. */
export function closeWhenSilent<Client extends Commander>(client: Client, options: SilenceOptions = {}): Client {
  return withDuplicates(client, (each) => {
    if (each.isCluster) each.on('+node', (node: Redis) => ofThread.follow(node, options))
    else ofThread.follow(each as Redis, options)
  })
}

/** Creates a watch that checks all connections passed to `follow` together. */
export function createSilenceWatch({ now, every }: CheckTimes): SilenceWatch {
  /** The connections that are open or being opened. */
  const open = new Map<Redis, Watched>()
  let stop: (() => void) | undefined
  let checkedAt = 0

  const checkNow = (): void => {
    const passedMs = Math.min(now() - checkedAt, 2 * CHECK_EVERY_MS)
    checkedAt = now()
    check([...open.values()], passedMs)
  }

  return {
    follow(redis, options) {
      redis.on('connect', () => {
        const { stream } = redis
        open.set(redis, { redis, stream, options, received: stream.bytesRead, quietMs: 0, isDue: false, dueMs: 0 })
        if (stop !== undefined) return
        checkedAt = now()
        stop = every(CHECK_EVERY_MS, checkNow)
      })
      redis.on('close', () => {
        open.delete(redis)
        if (open.size > 0) return
        stop?.()
        stop = undefined
      })
    },
  }
}

/** `passedMs` have passed since the last check, without the time for which the event loop was blocked. */
function check(open: readonly Watched[], passedMs: number): void {
  /** For how long nothing has arrived from each server over any connection. */
  const quietMs = new Map<string, number>()
  for (const each of open) {
    note(each, passedMs)
    const server = serverOf(each)
    quietMs.set(server, Math.min(each.quietMs, quietMs.get(server) ?? each.quietMs))
  }
  const silent = new Set<Watched>()
  const silentServers = new Set<string>()
  for (const each of open) {
    const server = serverOf(each)
    if (!isSilent(each, quietMs.get(server) ?? 0)) pingIfIdle(each)
    else {
      silent.add(each)
      silentServers.add(server)
    }
  }
  for (const each of open) {
    const server = serverOf(each)
    // If other connections work, nothing tells when this one was lost before the command to which a reply is due.
    const silentMs = Math.max(each.dueMs, quietMs.get(server) ?? 0)
    if (silent.has(each) || (each.quietMs >= QUIET_MS && silentServers.has(server))) close(each, silentMs)
  }
}

function note(each: Watched, passedMs: number): void {
  const received = each.stream.bytesRead
  const hasReceived = received !== each.received
  const wasDue = each.isDue && !hasReceived
  each.received = received
  each.quietMs = hasReceived ? 0 : each.quietMs + passedMs
  each.isDue = each.redis.commandQueue.length > 0
  // The time from the command to the first check does not count: Redis may have replied to another connection before it got the command.
  each.dueMs = wasDue && each.isDue ? each.dueMs + passedMs : 0
}

function isSilent({ redis, stream, options, quietMs, dueMs }: Watched, serverQuietMs: number): boolean {
  const { afterMs = SILENT_AFTER_MS } = options
  if (quietMs < afterMs || dueMs < GRACE_MS) return false
  const overdueMs = dueMs - blockingMs(redis.commandQueue.peekFront()?.command)
  const isPassedOver = overdueMs > serverQuietMs && stream.writableLength === 0
  return overdueMs >= afterMs || (overdueMs >= GRACE_MS && isPassedOver)
}

/** Returns for how long a command may block in Redis, in ms. Redis replies to the commands after it later. */
function blockingMs(command: unknown): number {
  if (!(command instanceof Command)) return 0
  // ioredis does not count it among the commands that block.
  if (command.name === 'wait') return Number(command.args[1])
  if (!Command.checkFlag('BLOCKING_COMMANDS', command.name)) return 0
  return command.extractBlockingTimeout() ?? 0
}

function pingIfIdle({ redis, options: { pingAfterMs = Number.POSITIVE_INFINITY }, quietMs }: Watched): void {
  const isIdle = redis.status === 'ready' && redis.commandQueue.length === 0
  // If the connection is lost, the client reports it.
  if (isIdle && quietMs >= pingAfterMs) redis.ping().catch(() => {})
}

/** The error says how long Redis has not been reachable, as far as is known. */
function close({ stream }: Watched, silentMs: number): void {
  const error = new Error(`Redis sent nothing for ${Math.round(silentMs)} ms`)
  stream.destroy(Object.assign(error, { code: 'ETIMEDOUT', silentMs }))
}

/** Returns for how long Redis had sent nothing when this error closed a connection, in ms, or 0 if it was closed for another reason. */
export function silentMsOf(error: Error | undefined): number {
  return error !== undefined && 'silentMs' in error ? Number(error.silentMs) : 0
}

const serverOf = ({ redis: { options } }: Watched): string => `${options.host}:${options.port}`
