// Follows a queue's event stream to determine how often each task ended and when it was requeued.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { Log } from '@bullpen/contract'

export interface Requeue {
  readonly id: string
  /** Unix time in ms, by Redis's clock. */
  readonly at: number
}

export interface QueueEvents {
  readonly completions: ReadonlyMap<string, number>
  /** How often each task ended as dead, cancelled or expired. */
  readonly failures: ReadonlyMap<string, number>
  /** The moves of tasks from active to waiting. */
  readonly requeues: readonly Requeue[]
  /** Resolves when all entries of the stream have been read. */
  close(): Promise<void>
}

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }
const READ_AT_ONCE = 1_000
const BLOCK_MS = 100

type Entries = readonly (readonly [id: string, fields: readonly string[]])[]

/**
 * Reads from the beginning of the stream, on a separate connection. BullMQ trims the stream to about 10,000 entries, so a reader
 * that falls behind misses some of them. The figure `eventsMissed` shows whether that has happened.
 */
export function followQueue(redisUrl: string, key: string): QueueEvents {
  const redis = blockingConnection(redisUrl, SILENT)
  const completions = new Map<string, number>()
  const failures = new Map<string, number>()
  const requeues: Requeue[] = []
  let last = '0'
  let closing = false

  const note = ([entry, pairs]: Entries[number]): void => {
    last = entry
    const fields = new Map(pairs.flatMap((name, i) => (i % 2 === 0 ? [[name, pairs[i + 1] ?? ''] as const] : [])))
    const id = fields.get('jobId') ?? ''
    if (fields.get('event') === 'completed') completions.set(id, (completions.get(id) ?? 0) + 1)
    if (fields.get('event') === 'failed') failures.set(id, (failures.get(id) ?? 0) + 1)
    if (fields.get('event') === 'waiting' && fields.get('prev') === 'active') {
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
    async close() {
      closing = true
      await reading
      redis.disconnect()
    },
  }
}
