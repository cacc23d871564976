// Follows a queue's event stream to determine in which order tasks started, how often each task ended, and when it was requeued.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { Log } from '@bullpen/contract'

export interface Requeue {
  readonly id: string
  /** Unix time in ms, by Redis's clock. */
  readonly at: number
}

/** The add of a task to the queue, or its start. */
export interface Move {
  readonly what: 'added' | 'active'
  readonly id: string
}

export interface QueueEvents {
  readonly completions: ReadonlyMap<string, number>
  /** How often each task ended as dead, cancelled or expired. */
  readonly failures: ReadonlyMap<string, number>
  /** The moves of tasks from active to waiting. */
  readonly requeues: readonly Requeue[]
  /** The adds and the starts of all tasks, in Redis's order. */
  readonly moves: readonly Move[]
  /** Resolves when all entries of the stream have been read. */
  close(): Promise<void>
}

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }
const READ_AT_ONCE = 1_000
const BLOCK_MS = 100

type Entries = readonly (readonly [id: string, fields: readonly string[]])[]

/**
 * Reads from the beginning of the stream, on a separate connection. BullMQ trims the stream to about 10,000 entries, so a reader
 * that falls behind misses some of them. The figure `eventsMissed` shows whether that has happened. Bullpen's scripts add the events of
 * moves only while somebody reads them, which the field `allEventsUntil` says.
 */
export function followQueue(redisUrl: string, key: string): QueueEvents {
  const redis = blockingConnection(redisUrl, SILENT)
  const completions = new Map<string, number>()
  const failures = new Map<string, number>()
  const requeues: Requeue[] = []
  const moves: Move[] = []
  let last = '0'
  let closing = false
  // Redis may have lost the field when it is back.
  redis.on('ready', () => {
    redis.hset(key.replace(/events$/, 'meta'), 'allEventsUntil', Number.MAX_SAFE_INTEGER).catch(() => {})
  })

  const note = ([entry, pairs]: Entries[number]): void => {
    last = entry
    const fields = new Map(pairs.flatMap((name, i) => (i % 2 === 0 ? [[name, pairs[i + 1] ?? ''] as const] : [])))
    const id = fields.get('jobId') ?? ''
    const event = fields.get('event')
    if (event === 'added' || event === 'active') moves.push({ what: event, id })
    if (event === 'completed') completions.set(id, (completions.get(id) ?? 0) + 1)
    if (event === 'failed') failures.set(id, (failures.get(id) ?? 0) + 1)
    if (event === 'waiting' && fields.get('prev') === 'active') {
      requeues.push({ id, at: Number.parseInt(entry, 10) })
    }
  }

  const reading = (async () => {
    for (;;) {
      const final = closing
      const answer = await redis
        .xread('COUNT', READ_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', key, last)
        // A drill may restart Redis, so the same entries are read again later.
        .catch(() => (final ? [] : sleep(BLOCK_MS, null)))
      const entries = ((answer as [string, Entries][] | null)?.[0]?.[1] ?? []) as Entries
      entries.forEach(note)
      if (final && entries.length === 0) return
    }
  })()

  return {
    completions,
    failures,
    requeues,
    moves,
    async close() {
      closing = true
      await reading
      redis.disconnect()
    },
  }
}
