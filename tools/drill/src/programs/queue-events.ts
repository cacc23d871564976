// Follows a queue's own event stream: how often each task was recorded as completed, and when it was handed back.
import { Redis } from 'ioredis'

export interface HandBack {
  readonly id: string
  /** Unix time in ms, by Redis' clock. */
  readonly at: number
}

export interface QueueEvents {
  readonly completions: ReadonlyMap<string, number>
  /** From active to waiting. */
  readonly handBacks: readonly HandBack[]
  /** Resolves when everything that the stream holds by now has been read. */
  close(): Promise<void>
}

const READ_AT_ONCE = 1_000
const BLOCK_MS = 100

type Entries = readonly (readonly [id: string, fields: readonly string[]])[]

/**
 * From the stream's beginning, and on a connection of its own. BullMQ trims the stream to about 10,000 entries: a reader
 * that falls behind misses some, which shows as tasks that completed unseen.
 */
export function followQueue(redisUrl: string, key: string): QueueEvents {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const completions = new Map<string, number>()
  const handBacks: HandBack[] = []
  let last = '0'
  let closing = false

  const note = ([entry, pairs]: Entries[number]): void => {
    last = entry
    const fields = new Map(pairs.flatMap((name, i) => (i % 2 === 0 ? [[name, pairs[i + 1] ?? ''] as const] : [])))
    const id = fields.get('jobId') ?? ''
    if (fields.get('event') === 'completed') completions.set(id, (completions.get(id) ?? 0) + 1)
    if (fields.get('event') === 'waiting' && fields.get('prev') === 'active') {
      handBacks.push({ id, at: Number.parseInt(entry, 10) })
    }
  }

  const reading = (async () => {
    for (;;) {
      const final = closing
      const answer = await redis.xread('COUNT', READ_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', key, last)
      const entries = ((answer as [string, Entries][] | null)?.[0]?.[1] ?? []) as Entries
      entries.forEach(note)
      if (final && entries.length === 0) return
    }
  })()

  return {
    completions,
    handBacks,
    async close() {
      closing = true
      await reading
      redis.disconnect()
    },
  }
}
