// Produces what the reader of a group's events receives: the events of its members in all queues, gaps, snapshots, and the group's end.
//
// The events are in the streams of the members' queues. A reader begins at the group's creation, and therefore also receives
// the events from before it connected. When the group has ended, every event of its members has been stored, so the reader
// passes on what it has not received yet and then ends.
import type { GroupId } from '@bullpen/contract'
import { groupNotFound } from '../groups/group-errors.ts'
import type { Broker } from '../ports/broker/broker.ts'
import type { Group } from '../ports/broker/groups.ts'
import type { EventStream } from '../ports/events.ts'
import { decodeCursor, encodeCursor } from './event-cursor.ts'
import type { EventFeeds, EventReader } from './event-feeds.ts'
import type { At, EventItem, GapItem, PositionItem } from './event-streams.ts'
import { unreadEvents } from './unread-events.ts'

export type GroupItem =
  | EventItem
  | GapItem
  | PositionItem
  | (At & { readonly kind: 'snapshot'; readonly group: Group })
  /** The last item. */
  | (At & { readonly kind: 'ended'; readonly group: Group })

/** How often the reader looks at a quiet group, in ms. */
const RECHECK_MS = 30_000
/** The clocks of a queue's node and of the group's node in a cluster differ by less, in ms. */
const CLOCK_MARGIN_MS = 5_000

type GroupBroker = { readonly groups: Pick<Broker['groups'], 'find' | 'watch'>; events(queue: string): EventStream }

export interface GroupStreamOptions {
  readonly id: GroupId
  /** The cursor from which the stream is resumed. */
  readonly after: string | undefined
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** The queues whose events can be read. Members in other queues are left out. */
  readonly queues: readonly string[]
}

/**
 * Opens the stream of the events of a group's members. A new reader begins with the first event of the group, or with a snapshot if that
 * event may no longer be kept. If a reader's position is no longer kept, the reader receives a gap and a snapshot. In both cases, the
 * reader goes on with the oldest event that is kept. Queues that the group has later are included. The stream ends when the group has
 * ended, or is no longer kept. The events of each queue are in order.
 *
 * @throws BullpenError `group_not_found`, `invalid_cursor` or `redis_unavailable`. If the store fails later, the stream throws.
 */
export async function openGroupStream(
  { feeds, broker }: { readonly feeds: EventFeeds; readonly broker: GroupBroker },
  { id, after: given, signal, queues }: GroupStreamOptions,
): Promise<AsyncGenerator<GroupItem, void>> {
  // The position of a group without members.
  const after = given === '' ? undefined : given
  const state: Watched = { isStale: false, wake() {} }
  const stop = await broker.groups.watch(id, () => {
    state.isStale = true
    state.wake()
  })
  try {
    const group = await broker.groups.find(id)
    if (group === undefined) throw groupNotFound(id)
    const known = (queue: string): boolean => queues.includes(queue)
    const since = `${Math.max(0, Math.floor(group.createdAt) - CLOCK_MARGIN_MS)}-0`
    const reader = await feeds.open({ queues: group.queues.filter(known), subject: id, since, after })
    state.wake = reader.wake
    const resumed = after === undefined ? [] : decodeCursor(after, group.queues, { named: true }).keys()
    const from = after ?? reader.cursor()
    return groupItems(reader, group, { broker, from, resumed: new Set(resumed), signal, known, state, stop })
  } catch (error) {
    stop()
    throw error
  }
}

interface Watched {
  /** Whether the group may have changed since it was read. */
  isStale: boolean
  wake: () => void
}

interface GroupItemsOptions {
  readonly broker: GroupBroker
  /** The position at which the reader begins. */
  readonly from: string
  /** The queues in which the reader resumes. */
  readonly resumed: ReadonlySet<string>
  readonly signal: AbortSignal
  readonly known: (queue: string) => boolean
  readonly state: Watched
  readonly stop: () => void
}

async function* groupItems(
  reader: EventReader,
  opened: Group,
  { broker, from, resumed, signal, known, state, stop }: GroupItemsOptions,
): AsyncGenerator<GroupItem, void> {
  let group = opened
  let cursor = from
  /** The queues whose beginning the reader has passed. A new reader is not notified of a gap at the beginning of a queue. */
  const begun = new Set(resumed)
  let hasSnapshot = false
  try {
    while (!signal.aborted) {
      if (state.isStale) {
        state.isStale = false
        const found = await broker.groups.find(group.id)
        if (found === undefined) return
        group = found
        await reader.include(group.queues.filter(known))
      }
      const item = reader.next()
      if (item?.kind === 'gap') {
        const found = await broker.groups.find(group.id)
        if (found === undefined) return
        const isBeginning = !begun.has(item.queue)
        begun.add(item.queue)
        if (!isBeginning) yield { kind: 'gap', from: cursor, cursor: item.cursor }
        if (!(isBeginning && hasSnapshot)) yield { kind: 'snapshot', group: found, cursor: item.cursor }
        hasSnapshot = true
        cursor = item.cursor
        continue
      }
      hasSnapshot = false
      if (item !== undefined) {
        begun.add(item.queue)
        cursor = item.cursor
        yield item
        continue
      }
      for (const queue of reader.positions().keys()) begun.add(queue)
      if (group.state === 'ended') {
        for await (const rest of remaining(broker, group, reader)) {
          cursor = rest.cursor
          yield rest
        }
        yield { kind: 'ended', group, cursor }
        return
      } else if (!(await reader.wait(signal, RECHECK_MS))) {
        // The message about a change may be lost with the node of a cluster.
        state.isStale = true
        cursor = reader.cursor()
        yield { kind: 'position', cursor }
      }
    }
  } finally {
    reader.stop()
    stop()
  }
}

/** Reads the events of an ended group that the feeds have not received yet. */
async function* remaining(
  broker: Pick<GroupBroker, 'events'>,
  { id }: Group,
  reader: EventReader,
): AsyncGenerator<EventItem | GapItem, void> {
  const positions = new Map(reader.positions())
  const cursor = (): string => encodeCursor(positions, { named: true })
  for (const [queue, position] of reader.positions()) {
    for await (const { events, hasGap } of unreadEvents(broker.events(queue), position)) {
      if (hasGap) yield { kind: 'gap', from: cursor(), cursor: cursor() }
      for (const event of events) {
        positions.set(queue, event.id)
        if (event.body.group?.id === id) yield { kind: 'event', queue, event, cursor: cursor() }
      }
    }
  }
}
