// Reads what the store has of a queue's events after a position, for a reader that must not miss what its feed has not received yet.
import { MIN_KEPT_EVENTS } from '@bullpen/contract/internal'
import type { EventPage, EventStream, StoredEvent } from '../ports/events.ts'
import { compareEventIds } from './event-ids.ts'

/** How many events one call to the store returns. */
const PAGE_SIZE = 1_000

interface UnreadPage {
  readonly events: readonly StoredEvent[]
  /** Whether events before this page may no longer be kept. */
  readonly hasGap: boolean
}

/**
 * Reads all events after this id, in pages. Takes one round trip for every 1,000 events, and one more for each page after which the store
 * may have dropped events.
 */
export async function* unreadEvents(stream: EventStream, position: string): AsyncGenerator<UnreadPage, void> {
  for (let after: string | undefined = position; after !== undefined; ) {
    const { events, next }: EventPage = await stream.read(after, PAGE_SIZE)
    // The store drops an event for lack of room only if it keeps this many newer ones.
    const hasGap = events.length >= MIN_KEPT_EVENTS && (await isTrimmedPast(stream, after))
    if (events.length > 0) yield { events, hasGap }
    after = next
  }
}

/** Returns whether events after this position may no longer be kept. */
async function isTrimmedPast(stream: EventStream, position: string): Promise<boolean> {
  const { first, isComplete } = await stream.bounds()
  return !isComplete && first !== undefined && compareEventIds(position, first) < 0
}
