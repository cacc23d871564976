// Produces what the reader of a task's events receives: its events, gaps and snapshots.
//
// The feed of the queue's events may be behind the store. What a reader finds in the store about its task is therefore no sign that it
// has received the events from before: at its beginning, and when the task has ended or been removed, the reader looks for events in the
// store that its feed does not have yet, and passes them on. It leaves them out when the feed has them.
import { isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'
import { readTaskId } from '@bullpen/contract/internal'
import type { Broker } from '../ports/broker/broker.ts'
import type { StoredEvent } from '../ports/events.ts'
import { taskNotFound } from '../task/task-errors.ts'
import type { EventFeeds, EventReader, ReaderItem } from './event-feeds.ts'
import { compareEventIds } from './event-ids.ts'
import type { At, EventItem, GapItem, PositionItem } from './event-streams.ts'
import { unreadEvents } from './unread-events.ts'

export type TaskItem =
  | EventItem
  | GapItem
  | PositionItem
  | (At & { readonly kind: 'snapshot'; readonly task: TaskRecord })

/** How often the reader of a task looks at the task without an event, in ms, because plain BullMQ can end or delete it without one. */
const RECHECK_MS = 30_000

type TaskBroker = Pick<Broker, 'find' | 'events'>

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
 * longer kept. A reader that resumes with a cursor receives what follows it. The stream ends when the task has ended. If the task has
 * been removed, the stream contains the events that are still kept.
 *
 * @throws BullpenError `task_not_found` if there is neither the task nor an event for the reader, `invalid_cursor` or
 * `redis_unavailable`. If the store fails later, the stream throws.
 */
export async function openTaskStream(
  { feeds, broker }: { readonly feeds: EventFeeds; readonly broker: TaskBroker },
  { id, after, signal, check }: TaskStreamOptions,
): Promise<AsyncGenerator<TaskItem, void>> {
  const queue = readTaskId(id)?.queue
  if (queue === undefined) throw taskNotFound(id)
  // The task is read after the reader has its position, so that no event is missed between the two.
  const reader = await feeds.open({ queues: [queue], subject: id, after })
  try {
    const from = reader.positions().get(queue) ?? reader.cursor()
    const task = await broker.find(id)
    if (task !== undefined) check?.(task)
    const source: TaskSource = { id, queue, reader, broker }
    const isNew = after === undefined && !reader.fromStart()
    const beginning = isNew ? fromEnqueued((await unreadOf(source, from)).events) : []
    const first = reader.next()
    if (task === undefined && beginning.length === 0) {
      const hasEvents = first?.kind === 'event' || (await unreadOf(source, from)).events.length > 0
      if (isNew || !hasEvents) throw taskNotFound(id)
    }
    const hasSnapshot = isNew && beginning.length === 0
    return taskItems(source, { opened: task, from, hasSnapshot, beginning, first, signal })
  } catch (error) {
    reader.stop()
    throw error
  }
}

interface TaskSource {
  readonly id: TaskId
  readonly queue: string
  readonly reader: EventReader
  readonly broker: TaskBroker
}

interface TaskItemsOptions {
  /** The task as it was when the stream was opened. */
  readonly opened: TaskRecord | undefined
  /** The position at which the reader begins. */
  readonly from: string
  /** Whether the stream begins with a snapshot. */
  readonly hasSnapshot: boolean
  /** The events with which the stream begins. */
  readonly beginning: readonly StoredEvent[]
  /** The reader's first item. */
  readonly first: ReaderItem | undefined
  readonly signal: AbortSignal
}

async function* taskItems(
  source: TaskSource,
  { opened, from, hasSnapshot, beginning, first, signal }: TaskItemsOptions,
): AsyncGenerator<TaskItem, void> {
  const { id, queue, reader, broker } = source
  let cursor = from
  let task = opened
  /** Whether the task has ended or been removed. A dead task may be retried by request. */
  let isOver = task === undefined || isFinal(task.status)
  /** Whether the newest event that the reader has received is the task's end. */
  let hasEnded = false
  const pass = (event: StoredEvent): EventItem => {
    cursor = event.id
    hasEnded = event.body.type === 'ended'
    if (event.body.type === 'retry_requested') isOver = false
    return { kind: 'event', queue, event, cursor }
  }
  const isNewer = (id: string): boolean => compareEventIds(id, cursor) > 0
  async function* skipTo(position: string): AsyncGenerator<TaskItem, void> {
    task = await broker.find(id)
    isOver = task === undefined || isFinal(task.status)
    yield { kind: 'gap', from: cursor, cursor: position }
    cursor = position
    // The snapshot of an ended task is the last item.
    hasEnded = task !== undefined && isOver
    if (task !== undefined) yield { kind: 'snapshot', task, cursor }
  }

  try {
    if (hasSnapshot && task !== undefined) {
      yield { kind: 'snapshot', task, cursor }
      if (isOver) return
    }
    for (const event of beginning) yield pass(event)
    let item = first
    for (; !signal.aborted; item = reader.next()) {
      if (item?.kind === 'event') {
        if (isNewer(item.event.id)) yield pass(item.event)
      } else if (item?.kind === 'gap') {
        yield* skipTo(item.cursor)
      } else if (hasEnded) {
        return
      } else if (isOver) {
        const unread = await unreadOf(source, cursor)
        if (unread.hasGap) {
          yield* skipTo(unread.last)
          if (isOver) return
          continue
        }
        for (const event of unread.events) yield pass(event)
        if (hasEnded) return
        // The event of the end is no longer kept, or the task was ended or removed without one.
        if (isOver) {
          if (task !== undefined) yield { kind: 'snapshot', task, cursor }
          return
        }
      } else if (!(await reader.wait(signal, RECHECK_MS))) {
        task = await broker.find(id)
        isOver = task === undefined || isFinal(task.status)
        if (!isOver) {
          if (isNewer(reader.cursor())) cursor = reader.cursor()
          yield { kind: 'position', cursor }
        }
      }
    }
  } finally {
    reader.stop()
  }
}

interface Unread {
  readonly events: readonly StoredEvent[]
  /** The id of the queue's newest event. */
  readonly last: string
  /** Whether events may be missing. */
  readonly hasGap: boolean
}

/** Returns the task's events after this id. */
async function unreadOf({ id, queue, broker }: TaskSource, position: string): Promise<Unread> {
  const events: StoredEvent[] = []
  let [last, hasGap] = [position, false]
  for await (const page of unreadEvents(broker.events(queue), position)) {
    events.push(...page.events.filter(({ taskId }) => taskId === id))
    last = page.events.at(-1)?.id ?? last
    hasGap ||= page.hasGap
  }
  return { events, last, hasGap }
}

/** Returns the events from the newest `enqueued` event on. */
function fromEnqueued(events: readonly StoredEvent[]): readonly StoredEvent[] {
  const start = events.findLastIndex(({ body }) => body.type === 'enqueued')
  return start === -1 ? [] : events.slice(start)
}
