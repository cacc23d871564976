// Reads the stream of one queue's events from Redis.
import type { TaskId } from '@bullpen/contract'
import type { EventBody } from '@bullpen/contract/internal'
import { type EventStream, STREAM_START, type StoredEvent } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'
import type { StreamEntry, StreamFollower } from '../redis/stream-follower.ts'
import type { Commander } from '../scripts/script.ts'

export interface EventStreamOptions {
  readonly redis: Commander
  /** The stream's key. */
  readonly key: string
  readonly follower: StreamFollower
  /** Runs a read once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
}

export function eventStream({ redis, key, follower, call }: EventStreamOptions): EventStream {
  return {
    bounds: () =>
      call(async () => {
        const info = await infoOf(redis, key)
        if (info === undefined) return { first: undefined, last: STREAM_START, isComplete: true }
        const length = Number(info.get('length'))
        const first = info.get('first-entry')
        return {
          first: Array.isArray(first) ? String(first[0]) : undefined,
          last: String(info.get('last-generated-id')),
          // Before version 7, Redis did not count the entries that were ever added.
          isComplete: info.has('entries-added') && Number(info.get('entries-added')) === length,
        }
      }),
    read: (after, limit) =>
      call(async () => {
        const entries = await redis.xrange(key, `(${after}`, '+', 'COUNT', limit)
        // The page may be followed by others even if some of its entries cannot be decoded.
        const next = entries.length === limit ? entries.at(-1)?.[0] : undefined
        return { events: entries.flatMap(decodeEntry), next }
      }),
    follow: (after, { onEvents, onLost }) =>
      follower.follow(key, after, {
        onEntries: (entries) => onEvents(entries.flatMap(decodeEntry)),
        onMissed(kind) {
          // After a reconnection, reading goes on after the last entry.
          if (kind !== 'reconnected') onLost()
        },
      }),
  }
}

/** Returns the reply of XINFO STREAM, or undefined if there is no stream. */
async function infoOf(redis: Commander, key: string): Promise<ReadonlyMap<string, unknown> | undefined> {
  try {
    const reply = (await redis.xinfo('STREAM', key)) as unknown[]
    return new Map(reply.flatMap((name, i) => (i % 2 === 0 ? [[String(name), reply[i + 1]] as const] : [])))
  } catch (error) {
    if (error instanceof Error && error.message.includes('no such key')) return undefined
    throw error
  }
}

/** Leaves out what this version of Bullpen can't read. */
function decodeEntry([id, fields]: StreamEntry): readonly StoredEvent[] {
  const values = new Map(fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]] as const] : [])))
  const taskId = values.get('id')
  const body = parseJson(values.get('event'))
  if (taskId === undefined || typeof body !== 'object' || body === null || !('type' in body)) return []
  // Only Bullpen writes these entries, so their fields are not checked one by one.
  return [{ id, taskId: taskId as TaskId, body: body as EventBody }]
}
