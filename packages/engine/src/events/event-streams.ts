// Produces what the reader of the events of queues receives: events, gaps and snapshots.
import type { Catalogue, TaskStatus } from '@bullpen/contract'
import type { Broker } from '../ports/broker/broker.ts'
import type { StoredEvent } from '../ports/events.ts'
import type { EventFeeds, EventReader } from './event-feeds.ts'

export interface At {
  /** The position after this item, with which the stream is resumed. */
  readonly cursor: string
}

export type EventItem = At & { readonly kind: 'event'; readonly queue: string; readonly event: StoredEvent }

/** Events may be missing after `from`. A snapshot follows. */
export type GapItem = At & { readonly kind: 'gap'; readonly from: string }

/** The reader has received everything up to this position, although there was no event for it. */
export type PositionItem = At & { readonly kind: 'position' }

/** After how many wake-ups without a matching event the reader of queues is given its position. */
const POSITION_EVERY = 1_000

export type Counts = Readonly<Record<TaskStatus, number>>

export type QueueItem =
  | EventItem
  | GapItem
  | PositionItem
  | (At & { readonly kind: 'snapshot'; readonly queues: Readonly<Record<string, Counts>> })

export interface QueueStreamOptions {
  readonly queues: readonly string[]
  /** Selects events. By default, all events of the queues are selected. */
  readonly matches?: ((event: StoredEvent) => boolean) | undefined
  readonly after: string | undefined
  readonly signal: AbortSignal
}

/**
 * Opens the stream of the events of one queue or several. A new reader begins with a snapshot of the number of tasks, and then
 * receives what follows. The stream has no end of its own. The events of each queue are in order.
 *
 * @throws BullpenError `queue_not_found`, `invalid_cursor` or `redis_unavailable`. If the store fails later, the stream throws.
 */
export async function openQueueStream(
  { feeds, broker }: { readonly feeds: EventFeeds; readonly broker: Pick<Broker, 'counts'> },
  { queues, matches, after, signal }: QueueStreamOptions,
): Promise<AsyncGenerator<QueueItem, void>> {
  const reader = await feeds.open({ queues, matches, after })
  return queueItems(reader, { broker, queues, after, signal })
}

async function* queueItems(
  reader: EventReader,
  {
    broker,
    queues,
    after,
    signal,
  }: Pick<QueueStreamOptions, 'queues' | 'after' | 'signal'> & { readonly broker: Pick<Broker, 'counts'> },
): AsyncGenerator<QueueItem, void> {
  const snapshot = async (cursor: string): Promise<QueueItem> => {
    const counts = await Promise.all(queues.map(async (queue) => [queue, await broker.counts(queue)] as const))
    return { kind: 'snapshot', queues: Object.fromEntries(counts), cursor }
  }
  let cursor = after ?? reader.cursor()
  let passed = 0
  try {
    if (after === undefined) yield await snapshot(cursor)
    while (!signal.aborted) {
      const item = reader.next()
      if (item === undefined) {
        passed++
        if (passed % POSITION_EVERY === 0) {
          cursor = reader.cursor()
          yield { kind: 'position', cursor }
        }
        await reader.wait(signal)
      } else if (item.kind === 'gap') {
        const counts = await snapshot(item.cursor)
        yield { kind: 'gap', from: cursor, cursor: item.cursor }
        yield counts
        cursor = item.cursor
      } else {
        cursor = item.cursor
        yield item
      }
    }
  } finally {
    reader.stop()
  }
}

/** Returns the queues that have a definition whose tasks have events. */
export function queuesWithEvents({
  queues,
  definitions,
}: Pick<Catalogue, 'queues' | 'definitions'>): readonly string[] {
  return queues.filter((queue) => definitions.some((each) => each.queue === queue && each.events))
}
