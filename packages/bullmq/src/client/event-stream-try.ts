// Streams events to a client that reads them from Redis itself.
import { type EventTry, streamedEvent, type TransportEvent, taskView } from '@bullpen/contract/internal'
import { type GroupItem, groupView, type TaskItem } from '@bullpen/engine/internal'
import { problemOf } from './redis-problem.ts'

export interface StreamToTry {
  /** Opens the stream after this position. The signal ends the stream. */
  readonly open: (after: string | undefined, signal: AbortSignal) => Promise<AsyncIterable<TaskItem | GroupItem>>
  /** Runs a call once, and converts its errors. */
  readonly once: <T>(run: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>
}

export function eventStreamTry({ open, once }: StreamToTry): EventTry {
  return async function* (after, outer) {
    const ending = endingWith(outer)
    try {
      const items = await once(() => open(after, ending.signal), outer)
      yield { id: undefined, event: undefined }
      for await (const item of items) yield { id: item.cursor, event: eventOf(item) }
      outer?.throwIfAborted()
    } catch (error) {
      outer?.throwIfAborted()
      throw problemOf(error, undefined)
    } finally {
      ending.stop()
    }
  }
}

/** Returns what the client receives of an item, or undefined if only the position has changed. */
function eventOf(item: TaskItem | GroupItem): TransportEvent['event'] {
  switch (item.kind) {
    case 'event':
      return streamedEvent(item.event.id, item.queue, item.event.taskId, item.event.body)
    case 'position':
      return undefined
    case 'gap':
      return { type: 'gap', id: item.from }
    case 'snapshot':
      return 'group' in item
        ? { type: 'snapshot', id: item.cursor, group: groupView(item.group) }
        : { type: 'snapshot', id: item.cursor, task: taskView(item.task) }
    case 'ended':
      return { type: 'group_ended', id: item.cursor, group: groupView(item.group) }
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
