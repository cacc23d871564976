// Defines the port to the streams of events, and what a task's attempt reports to its queue's stream.
import type { TaskId } from '@bullpen/contract'
import type { EventBody } from '@bullpen/contract/internal'
import type { AboutAttempt } from '../events/event-bodies.ts'

/**
 * An event in its queue's stream. Its id is `<ms since 1970>-<number>`, by the store's clock. The ids of a stream increase, and
 * {@link compareEventIds} orders them.
 */
export interface StoredEvent {
  readonly id: string
  readonly taskId: TaskId
  readonly body: EventBody
}

/** The position before a stream's first event. */
export const STREAM_START = '0-0'

export interface EventBounds {
  /** The id of the oldest event that is kept. Undefined if there is none. */
  readonly first: string | undefined
  /** The id of the newest event that the stream ever had, or {@link STREAM_START}. */
  readonly last: string
  /** Whether every event that the stream ever had is kept. */
  readonly isComplete: boolean
}

export interface EventPage {
  readonly events: readonly StoredEvent[]
  /** The id after which the next page begins. Undefined if this page is the last one. */
  readonly next: string | undefined
}

export interface EventListener {
  /** Receives events in order. */
  onEvents(events: readonly StoredEvent[]): void
  /**
   * Called if events may have been dropped before they were read, or if the store has lost its data. The events that follow may
   * have any id.
   */
  onLost(): void
}

/** The stream of one queue's events. The store drops old events when there are too many of them or when they are too old. */
export interface EventStream {
  /** Takes one round trip. */
  bounds(): Promise<EventBounds>
  /** Returns the oldest events after this id, at most `limit`. Takes one round trip. */
  read(after: string, limit: number): Promise<EventPage>
  /**
   * Calls the listener with all events after this id, until the returned function is called. While the store is unreachable, the
   * listener is not called. All listeners of a process share one connection.
   */
  follow(after: string, listener: EventListener): () => void
}

/** Adds events of one attempt to its queue's stream. */
export interface AttemptEvents {
  /** What each event says of its task and attempt. */
  readonly about: AboutAttempt
  /**
   * Adds an event without waiting for the store. The consumer may send several events together, but never after the attempt's end
   * and never if the attempt has lost its lock. Never throws.
   */
  report(body: EventBody): void
}
