// Follows streams for all of a broker's callers, over one connection, and passes on what is added to them.
//
// A connection that blocks in a command can't be told to read another stream. If the streams change, it is therefore replaced. This
// happens only when the first caller of a queue appears, and when the last caller of all queues has gone. In a cluster, one command
// can't read streams of several hash slots, so each slot has a connection of its own.
//
// Redis drops the oldest entries of a stream. It can drop entries that were not read yet in two cases: more were added between two reads
// than the stream keeps, so that a read returns all that are kept; or no read has succeeded for some time, because entries are also dropped
// by their age. Only then does a read take another command, which compares how many entries Redis has counted with how many were read. To
// look whether the last entry that was read still exists is not enough, because it may have been dropped without any that follow it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@bullpen/contract'
import { compareEventIds, STREAM_START } from '@bullpen/engine/internal'
import type { Commander } from '../scripts/script.ts'
import { isCluster } from './redis-client.ts'
import { type StreamInfo, streamInfo } from './stream-info.ts'

/** How long one read may block, in ms. A connection that has become silent is therefore noticed within 5 s (silence.ts). */
const BLOCK_MS = 3_000
/** The maximum number of entries of one stream per read. */
const PAGE_SIZE = 1_000
/** No stream drops entries that are younger than twice this, in ms. A read responds much sooner unless this process was stopped. */
const STALL_MS = 30_000
const RETRY_MS = 200
/**
 * If there were this many reads within {@link BUSY_WINDOW_MS}, the next read waits for {@link BUSY_PAUSE_MS}, so that it returns
 * several entries. Otherwise, each entry of a busy stream would take Redis and the process one command.
 */
const BUSY_READS = 20
const BUSY_WINDOW_MS = 100
const BUSY_PAUSE_MS = 5

/** One entry of a stream: its id, and its fields, which alternate with their values. */
export type StreamEntry = readonly [id: string, fields: readonly string[]]

export interface StreamListener {
  /** Receives entries in order. */
  onEntries(entries: readonly StreamEntry[]): void
  /** Called if entries may have been missed: the connection was lost, or Redis has dropped entries before they were read. */
  onMissed(kind: 'reconnected' | 'trimmed' | 'reset'): void
}

export interface StreamFollower {
  /**
   * Passes on all entries of a stream after this id, until the returned function is called. The stream keeps at least `kept` entries that
   * are not too old. All callers that follow the stream at the same time say the same number.
   */
  follow(key: string, after: string, listener: StreamListener, kept: number): () => void
  close(): void
}

export interface StreamFollowerOptions {
  /** Sends the commands that do not block. */
  readonly redis: Commander
  /** Opens a connection that may block in a command. */
  readonly connect: () => Commander
  readonly log: Log
}

export function openStreamFollower(options: StreamFollowerOptions): StreamFollower {
  const groups = new Map<string, Group>()
  const groupOf = (key: string): string => (isCluster(options.redis) ? key.slice(0, key.indexOf('}') + 1) : '')
  let isClosed = false
  return {
    follow(key, after, listener, kept) {
      if (isClosed) return () => {}
      const name = groupOf(key)
      const group = groups.get(name) ?? createGroup(options)
      groups.set(name, group)
      return group.follow(key, after, listener, kept)
    },
    close() {
      isClosed = true
      for (const group of groups.values()) group.close()
    },
  }
}

/** The streams that one connection reads. */
interface Group {
  follow: StreamFollower['follow']
  close(): void
}

/** One listener and its position, which is behind that of its stream until the first read. */
interface Follower {
  readonly listener: StreamListener
  after: string
}

interface Stream {
  /** A read that returns fewer entries than this has missed none, unless they were too old. */
  readonly full: number
  /** The id after which the stream is read. */
  last: string
  /** How many entries up to `last` were ever added, if known. */
  added: number | undefined
  /** Whether entries after `last` may have been dropped by their age. */
  isBehind: boolean
  readonly followers: Set<Follower>
}

function createGroup({ redis, connect, log }: StreamFollowerOptions): Group {
  const streams = new Map<string, Stream>()
  let connection: Commander | undefined
  let isRunning = false
  let isRestarting = false

  /** Interrupts a read that is in progress, because the streams have changed. */
  const restart = (): void => {
    if (isRestarting) return
    isRestarting = true
    // The streams of several callers that arrive together are read over one new connection.
    setImmediate(() => {
      isRestarting = false
      const replaced = connection
      connection = undefined
      replaced?.disconnect()
      if (streams.size > 0 && !isRunning) void run()
    })
  }

  const open = (): Commander => {
    const opened = connect()
    connection = opened
    let isFirst = true
    opened.on('ready', () => {
      // ioredis sends the interrupted read again, but Redis may have lost entries in the meantime.
      if (!isFirst && connection === opened) resume()
      isFirst = false
    })
    return opened
  }

  const run = async (): Promise<void> => {
    isRunning = true
    const pause = pauseWhenBusy()
    while (streams.size > 0) {
      const current = connection ?? open()
      const read = [...streams]
      try {
        const after = new Map(read.map(([key, { last }]) => [key, last]))
        const positions = [...after.keys(), ...after.values()]
        const sentAt = performance.now()
        const reply = await current.xread('COUNT', PAGE_SIZE, 'BLOCK', BLOCK_MS, 'STREAMS', ...positions)
        if (performance.now() - sentAt > STALL_MS) resume()
        for (const [key, entries] of reply ?? []) await pass(key, entries, after.get(key))
        if (reply !== null) await pause()
      } catch (err) {
        // The connection was replaced, so the next read uses the new one.
        if (connection !== current) continue
        log.debug({ err }, 'reading streams failed')
        await sleep(RETRY_MS)
      }
    }
    isRunning = false
    connection?.disconnect()
    connection = undefined
  }

  const pass = async (key: string, entries: readonly StreamEntry[], after: string | undefined): Promise<void> => {
    const stream = streams.get(key)
    const [first, newest] = [entries[0], entries.at(-1)]
    if (stream === undefined || first === undefined || newest === undefined) return
    const mayMiss = stream.isBehind || entries.length >= stream.full
    const info = mayMiss ? await streamInfo(redis, key) : undefined
    // If a follower with an earlier position has come in the meantime, the next read returns these entries again.
    if (stream.last !== after) return
    if (info !== undefined && isTrimmed(stream, info)) missed(stream, 'trimmed')
    stream.last = newest[0]
    stream.isBehind = false
    if (stream.added !== undefined) stream.added += entries.length
    noteAdded(stream, info)
    for (const follower of stream.followers) {
      const isNew = compareEventIds(follower.after, first[0]) < 0
      const own = isNew ? entries : entries.filter(([id]) => compareEventIds(id, follower.after) > 0)
      follower.after = newest[0]
      if (own.length > 0) follower.listener.onEntries(own)
    }
  }

  /** Returns whether Redis may have dropped entries after the last one that was read. */
  const isTrimmed = ({ last, added }: Stream, { first, length, added: all }: StreamInfo): boolean => {
    if (first === undefined || compareEventIds(first, last) <= 0) return false
    return added === undefined || all === undefined || all - added > length
  }

  /** Notes how many entries were added, if the last one was read. */
  const noteAdded = (stream: Stream, info: StreamInfo | undefined): void => {
    if (info?.last === stream.last) stream.added = info.added
  }

  const measure = async (key: string, stream: Stream): Promise<void> => {
    const info = await streamInfo(redis, key)
    if (stream.added === undefined) noteAdded(stream, info)
  }

  /** Called when reads succeed again. What they return is passed on afterwards. */
  const resume = (): void => {
    for (const stream of streams.values()) stream.isBehind = true
    void checkAll()
  }

  /** Looks whether Redis has lost the newest entries, for example because a replica that lagged behind has taken over. */
  const checkAll = async (): Promise<void> => {
    for (const [key, stream] of streams) {
      try {
        const info = await streamInfo(redis, key)
        const isReset = compareEventIds(info.last, stream.last) < 0 && info.last !== STREAM_START
        if (isReset) {
          stream.last = info.last
          for (const follower of stream.followers) follower.after = info.last
          restart()
        }
        noteAdded(stream, info)
        // There was nothing to miss.
        if (info.last === stream.last) stream.isBehind = false
        missed(stream, isReset ? 'reset' : 'reconnected')
      } catch (err) {
        log.debug({ err }, 'reading a stream failed')
      }
    }
  }

  const missed = ({ followers }: Stream, kind: 'reconnected' | 'trimmed' | 'reset'): void => {
    for (const { listener } of followers) listener.onMissed(kind)
  }

  return {
    follow(key, after, listener, kept) {
      const follower = { listener, after }
      const known = streams.get(key)
      if (known === undefined) {
        const full = Math.min(kept, PAGE_SIZE)
        const stream = { full, last: after, added: undefined, isBehind: false, followers: new Set([follower]) }
        streams.set(key, stream)
        restart()
        measure(key, stream).catch((err: unknown) => log.debug({ err }, 'reading a stream failed'))
      } else {
        known.followers.add(follower)
        // The stream is read again from the position of the follower that is behind.
        if (compareEventIds(after, known.last) < 0) {
          known.last = after
          known.added = undefined
          restart()
        }
      }
      return () => {
        const stream = streams.get(key)
        if (stream === undefined || !stream.followers.delete(follower) || stream.followers.size > 0) return
        streams.delete(key)
        // A stream without followers is left out of the next read.
        if (streams.size === 0) restart()
      }
    },
    close() {
      streams.clear()
      const closed = connection
      connection = undefined
      closed?.disconnect()
    },
  }
}

/** Returns a function that waits a little after a read if there were many reads lately. */
function pauseWhenBusy(): () => Promise<unknown> | undefined {
  let reads = 0
  let since = 0
  return () => {
    const now = performance.now()
    if (now - since > BUSY_WINDOW_MS) {
      since = now
      reads = 0
    }
    reads++
    return reads > BUSY_READS ? sleep(BUSY_PAUSE_MS) : undefined
  }
}

/** Returns the id of a stream's newest entry. What is added after this call has a higher id. Takes one round trip. */
export async function newestId(redis: Commander, key: string): Promise<string> {
  const [newest] = await redis.xrevrange(key, '+', '-', 'COUNT', 1)
  return newest?.[0] ?? STREAM_START
}
