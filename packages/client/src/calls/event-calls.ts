// Implements the client's method that streams the events of a queue or of tasks with a tag. It needs the HTTP API.
import type { EventGap, QueueSnapshot, StreamedEvent } from '@bullpen/contract'
import { assertEventFilter } from '../arguments.ts'
import { followStream } from '../events/followed-stream.ts'
import type { HttpTransport } from '../http/http-transport.ts'
import type { Abortable } from '../task-handle.ts'

/** Which events to stream: those of a queue, or those of all tasks with a tag. */
export type EventFilter = { readonly queue: string } | { readonly tag: string }

/** An event of a task, or a snapshot of the queues' counts. A snapshot comes first, and after each `gap`. */
export type QueueEvent = StreamedEvent | QueueSnapshot | EventGap

export interface EventCalls {
  /**
   * Streams events until the iteration is left or the signal aborts. The first event is a `snapshot` of the number of tasks by status.
   * If the connection is lost, the client connects again and continues after the last event. If events in between are no longer
   * kept, it yields a `gap` and a `snapshot`.
   *
   * @throws TypeError unless the filter has either a queue or a tag. The iteration throws a ProblemError if the API rejects the
   * request, or has been unreachable for `retryFor`.
   */
  events(filter: EventFilter & Abortable): AsyncGenerator<QueueEvent, void, void>
}

export function eventCalls(transport: HttpTransport, retryForMs: number): EventCalls {
  return {
    events(filter) {
      assertEventFilter(filter)
      const { signal } = filter
      const path = pathOf(filter)
      const open = (after: string | undefined, current: AbortSignal | undefined) =>
        transport.stream(path, after, current)
      return followStream(open, { signal, retryForMs, isLast: () => false }) as AsyncGenerator<QueueEvent, void, void>
    },
  }
}

function pathOf(filter: EventFilter): string {
  if ('queue' in filter && filter.queue !== undefined) return `v1/queues/${encodeURIComponent(filter.queue)}/events`
  return `v1/events?${new URLSearchParams(filter)}`
}
