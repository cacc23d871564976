// Produces what the reader of a task's events, or of the events of queues, receives: events, gaps and snapshots.
import { isFinal, type TaskId, type TaskRecord, type TaskStatus } from '@bullpen/contract'
import { readTaskId } from '@bullpen/contract/internal'
import type { Broker } from '../ports/broker/broker.ts'
import type { StoredEvent } from '../ports/events.ts'
import { taskNotFound } from '../task/task-not-found-error.ts'
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

export type TaskItem =
  | EventItem
  | GapItem
  | PositionItem
  | (At & { readonly kind: 'snapshot'; readonly task: TaskRecord })

/** After how many wake-ups without a matching event the reader of queues is given its position. */
const POSITION_EVERY = 1_000

export type Counts = Readonly<Record<TaskStatus, number>>

export type QueueItem =
  | EventItem
  | GapItem
  | PositionItem
  | (At & { readonly kind: 'snapshot'; readonly queues: Readonly<Record<string, Counts>> })

/** How often the reader of a task looks at the task without an event, in ms, because plain BullMQ can end or delete it without one. */
const RECHECK_MS = 30_000

export interface TaskStreamOptions {
  readonly id: TaskId
  /** The cursor from which the stream is resumed. */
  readonly after: string | undefined
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** Throws an error if the task's events must not be streamed. */
  readonly check?: ((task: TaskRecord) => void) | undefined
}

/**
 * Opens the stream of a task's events. A new reader begins with the task's `enqueued` event, or with a snapshot if that event is no
 * longer kept. A reader that resumes with a cursor receives what follows it. The stream ends when the task has ended.
 *
 * @throws BullpenError `task_not_found`, `invalid_cursor` or `redis_unavailable`. If the store fails later, the stream throws.
 */
export async function openTaskStream(
  { feeds, broker }: { readonly feeds: EventFeeds; readonly broker: Pick<Broker, 'find'> },
  { id, after, signal, check }: TaskStreamOptions,
): Promise<AsyncGenerator<TaskItem, void>> {
  const queue = readTaskId(id)?.queue
  if (queue === undefined) throw taskNotFound(id)
  // The task is read after the reader has its position, so that no event is missed between the two.
  const reader = await feeds.open({ queues: [queue], subject: id, after })
  try {
    const task = await broker.find(id)
    if (task === undefined) throw taskNotFound(id)
    check?.(task)
    return taskItems(reader, task, { broker, isNew: after === undefined, from: after ?? reader.cursor(), signal })
  } catch (error) {
    reader.stop()
    throw error
  }
}

interface TaskItemsOptions {
  readonly broker: Pick<Broker, 'find'>
  /** Whether the reader does not resume a stream. */
  readonly isNew: boolean
  /** The position at which the reader begins. */
  readonly from: string
  readonly signal: AbortSignal
}

async function* taskItems(
  reader: EventReader,
  opened: TaskRecord,
  { broker, isNew, from, signal }: TaskItemsOptions,
): AsyncGenerator<TaskItem, void> {
  let cursor = from
  /** The ended task, until it is retried. */
  let ended = isFinal(opened.status) ? opened : undefined
  try {
    if (isNew && !reader.fromStart()) {
      yield { kind: 'snapshot', task: opened, cursor }
      if (ended !== undefined) return
    }
    let item = reader.next()
    while (!signal.aborted) {
      if (item === undefined) {
        // The event of the end is no longer kept, or the task was ended without one.
        if (ended !== undefined) {
          yield { kind: 'snapshot', task: ended, cursor }
          return
        }
        await reader.wait(signal, RECHECK_MS)
        item = reader.next()
        if (item !== undefined || signal.aborted) continue
        const task = await broker.find(opened.id)
        if (task === undefined) return
        if (isFinal(task.status)) ended = task
        item = reader.next()
        if (item === undefined && ended === undefined) {
          cursor = reader.cursor()
          yield { kind: 'position', cursor }
        }
        continue
      }
      if (item.kind === 'gap') {
        const task = await broker.find(opened.id)
        yield { kind: 'gap', from: cursor, cursor: item.cursor }
        cursor = item.cursor
        if (task === undefined) return
        yield { kind: 'snapshot', task, cursor }
        if (isFinal(task.status)) return
        ended = undefined
        item = reader.next()
        continue
      }
      cursor = item.cursor
      yield item
      const { type } = item.event.body
      item = reader.next()
      // A dead task may have been retried by request since.
      if (type === 'ended' && item === undefined) return
      if (type === 'retry_requested') ended = undefined
    }
  } finally {
    reader.stop()
  }
}

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
