// Reads the stream of one queue's events from Redis.
import type { TaskId } from '@bullpen/contract'
import { type EventBody, MIN_KEPT_EVENTS } from '@bullpen/contract/internal'
import type { EventStream, StoredEvent } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'
import type { StreamEntry, StreamFollower } from '../redis/stream-follower.ts'
import { streamInfo } from '../redis/stream-info.ts'
import type { RedisAccess } from '../schema.ts'
import { pairsOf } from '../scripts/pairs.ts'

export interface EventStreamOptions extends Pick<RedisAccess, 'redis' | 'call'> {
  /** The stream's key. */
  readonly key: string
  readonly follower: StreamFollower
}

export function eventStream({ redis, key, follower, call }: EventStreamOptions): EventStream {
  return {
    bounds: () =>
      call(async () => {
        const { first, last, length, added } = await streamInfo(redis, key)
        return { first, last, isComplete: added === length }
      }),
    read: (after, limit) =>
      call(async () => {
        const entries = await redis.xrange(key, `(${after}`, '+', 'COUNT', limit)
        // The page may be followed by others even if some of its entries cannot be decoded.
        const next = entries.length === limit ? entries.at(-1)?.[0] : undefined
        return { events: entries.flatMap(decodeEntry), next }
      }),
    follow: (after, { onEvents, onLost }) =>
      follower.follow(
        key,
        after,
        {
          onEntries: (entries) => onEvents(entries.flatMap(decodeEntry)),
          onMissed(kind) {
            // After a reconnection, reading goes on after the last entry.
            if (kind !== 'reconnected') onLost()
          },
        },
        MIN_KEPT_EVENTS,
      ),
  }
}

/** Leaves out what this version of Bullpen can't read. */
function decodeEntry([id, fields]: StreamEntry): readonly StoredEvent[] {
  const values = new Map(pairsOf(fields))
  const taskId = values.get('id')
  const body = parseJson(values.get('event'))
  if (taskId === undefined || typeof body !== 'object' || body === null || !('type' in body)) return []
  // Only Bullpen writes these entries, so their fields are not checked one by one.
  return [{ id, taskId: taskId as TaskId, body: body as EventBody }]
}
