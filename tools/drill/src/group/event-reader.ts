// Reads the events of a group's members over the API, and compares them with the ledger.
import type { GroupHandle, GroupStreamEvent } from '@bullpen/client'
import type { StreamedEvent } from '@bullpen/contract'
import type { Figures } from '../figures/figures.ts'
import type { Effect } from '../ledger/effects.ts'

/** What this file needs of an event in the stream of a group. */
type Received = StreamedEvent | { readonly type: Exclude<GroupStreamEvent['type'], StreamedEvent['type']> }

export interface EventReader {
  /** Returns whether the last event of the stream has been received. */
  isComplete(): boolean
  /** Ends the stream, and returns what it has received. Rejects if the stream has failed. */
  close(): Promise<readonly Received[]>
}

/** Reads the events of a group. The client connects again when its connection is lost. */
export function readEvents(group: GroupHandle): EventReader {
  const ending = new AbortController()
  const events: GroupStreamEvent[] = []
  const reading = (async () => {
    try {
      for await (const event of group.events({ signal: ending.signal })) events.push(event)
    } catch (error) {
      if (!ending.signal.aborted) throw error
    }
  })()
  reading.catch(() => {})
  return {
    isComplete: () => events.at(-1)?.type === 'group_ended',
    async close() {
      ending.abort()
      await reading
      return events
    },
  }
}

/**
 * Every member is enqueued once and ends once, every start in the ledger has an event, and the group ends once. After a gap, events are
 * missing.
 */
export function eventFigures(
  events: readonly Received[],
  members: readonly string[],
  effects: readonly Effect[],
): Pick<Figures, 'events' | 'eventsLost' | 'eventsRepeated'> {
  const received = events.flatMap((event) => keyOf(event) ?? [])
  const expected = [
    ...members.flatMap((id) => [`enqueued ${id}`, `ended ${id}`]),
    ...effects.flatMap(({ what, id, fencingToken }) => (what === 'start' ? [`started ${id} ${fencingToken}`] : [])),
    'group_ended',
  ]
  const distinct = new Set(received)
  const gaps = events.filter(({ type }) => type === 'gap').length
  return {
    events: received.length,
    eventsLost: expected.filter((key) => !distinct.has(key)).length + gaps,
    eventsRepeated: received.length - distinct.size,
  }
}

/** Returns what an event reports, or undefined for a snapshot and a gap. */
function keyOf(event: Received): string | undefined {
  switch (event.type) {
    case 'snapshot':
    case 'gap':
      return undefined
    case 'group_ended':
      return event.type
    default:
      return taskKeyOf(event)
  }
}

/** A member is enqueued and ends only once, however often it is started. */
function taskKeyOf(event: StreamedEvent): string {
  if (event.type === 'enqueued' || event.type === 'ended') return `${event.type} ${event.taskId}`
  const attempt = 'fencingToken' in event ? event.fencingToken : event.id
  return `${event.type} ${event.taskId} ${attempt}`
}
