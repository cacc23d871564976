// Streams events to a client that reads them from Redis itself.
import type { EventTry, TransportEvent } from '@bullpen/contract/internal'
import { problemOf } from './redis-problem.ts'

export interface StreamToTry<Item extends { readonly cursor: string }> {
  /** Opens the stream after this position. The signal ends the stream. */
  readonly open: (after: string | undefined, signal: AbortSignal) => Promise<AsyncIterable<Item>>
  /** Converts an item, or returns undefined if only the position has changed. */
  readonly toEvent: (item: Item) => TransportEvent['event']
  /** Runs a call once, and converts its errors. */
  readonly once: <T>(run: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>
}

export function eventStreamTry<Item extends { readonly cursor: string }>({
  open,
  toEvent,
  once,
}: StreamToTry<Item>): EventTry {
  return async function* (after, outer) {
    const ending = endingWith(outer)
    try {
      const items = await once(() => open(after, ending.signal), outer)
      yield { id: undefined, event: undefined }
      for await (const item of items) yield { id: item.cursor, event: toEvent(item) }
      outer?.throwIfAborted()
    } catch (error) {
      outer?.throwIfAborted()
      throw problemOf(error, undefined)
    } finally {
      ending.stop()
    }
  }
}

/** Returns a signal that aborts with the outer one, until `stop` aborts it. */
function endingWith(outer: AbortSignal | undefined): { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    stop() {
      outer?.removeEventListener('abort', abort)
      abort()
    },
  }
}
