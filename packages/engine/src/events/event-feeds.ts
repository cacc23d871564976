// Opens the feed of each queue that has readers, and closes it some time after the last reader has gone.
import type { GroupId, TaskId } from '@bullpen/contract'
import type { EventStream, StoredEvent } from '../ports/events.ts'
import { decodeCursor, encodeCursor, type Positions } from './event-cursor.ts'
import { type FeedReader, QueueFeed } from './queue-feed.ts'

export interface EventFeedsOptions {
  /** @throws BullpenError `queue_not_found`. */
  readonly stream: (queue: string) => EventStream
  /** Returns how many events the window of a queue's feed holds. */
  readonly limit: (queue: string) => number
  /** Calls a function after `ms`. The returned function cancels the call. */
  readonly after: (ms: number, run: () => void) => () => void
}

export interface EventReaderOptions {
  readonly queues: readonly string[]
  /** Selects the events of one task, or of the members of one group. */
  readonly subject?: TaskId | GroupId | undefined
  /**
   * The id in every stream after which a queue is read for which the cursor has no position. After a gap, the reader goes on with the
   * oldest event that is kept.
   */
  readonly since?: string | undefined
  readonly matches?: ((event: StoredEvent) => boolean) | undefined
  /** The cursor after which the reader begins. */
  readonly after?: string | undefined
}

/** An event, or a gap, after which `cursor` is the reader's position. */
export type ReaderItem =
  | { readonly kind: 'event'; readonly queue: string; readonly event: StoredEvent; readonly cursor: string }
  | { readonly kind: 'gap'; readonly queue: string; readonly cursor: string }

export interface EventReader {
  next(): ReaderItem | undefined
  cursor(): string
  /** The id up to which the reader has passed each queue's stream. */
  positions(): Positions
  /** Whether the reader began at the task's `enqueued` event. */
  fromStart(): boolean
  /**
   * Reads further queues as well. Leaves out those that the reader has.
   *
   * @throws BullpenError `queue_not_found` or `redis_unavailable`. The reader must then be stopped.
   */
  include(queues: readonly string[]): Promise<void>
  /** Resolves with true when there may be another item or the signal aborts, and with false after `ms`. */
  wait(signal: AbortSignal, ms?: number): Promise<boolean>
  /** Ends the present or the next wait. */
  wake(): void
  stop(): void
}

export interface EventFeeds {
  /**
   * Opens a reader. The first reader of a queue loads the queue's events.
   *
   * @throws BullpenError `queue_not_found`, `invalid_cursor` or `redis_unavailable`.
   */
  open(options: EventReaderOptions): Promise<EventReader>
  close(): void
}

/** How long a feed without readers stays open, in ms, because a reader that was disconnected comes back soon. */
const KEPT_MS = 10_000

interface OpenFeed {
  readonly feed: Promise<QueueFeed>
  readers: number
  cancelClosing: () => void
}

export function createEventFeeds({ stream, limit, after: afterTime }: EventFeedsOptions): EventFeeds {
  const feeds = new Map<string, OpenFeed>()

  const use = (queue: string): OpenFeed => {
    const known = feeds.get(queue)
    if (known !== undefined) {
      known.cancelClosing()
      known.readers++
      return known
    }
    const feed = QueueFeed.open({ stream: stream(queue), limit: limit(queue) })
    const opened: OpenFeed = { feed, readers: 1, cancelClosing: () => {} }
    feeds.set(queue, opened)
    // The next reader tries again.
    feed.catch(() => feeds.delete(queue))
    return opened
  }

  const leave = (queue: string, used: OpenFeed): void => {
    used.readers--
    if (used.readers > 0 || feeds.get(queue) !== used) return
    used.cancelClosing = afterTime(KEPT_MS, () => {
      if (used.readers > 0 || feeds.get(queue) !== used) return
      feeds.delete(queue)
      void used.feed.then((feed) => feed.close())
    })
  }

  return {
    async open({ queues, subject, since, matches, after }) {
      // The queues of a reader that begins at a given time may change, so its cursors name them.
      const named = since !== undefined
      const positions = after === undefined ? new Map<string, string>() : decodeCursor(after, queues, { named })
      const reader = eventReader({
        named,
        read(queue, feed, onReady) {
          return feed.reader({ after: positions.get(queue), subject, since, matches, onReady })
        },
      })
      try {
        await reader.include(queues)
        return reader
      } catch (error) {
        reader.stop()
        throw error
      }
    },

    close() {
      for (const { feed, cancelClosing } of feeds.values()) {
        cancelClosing()
        feed.then(
          (each) => each.close(),
          () => {},
        )
      }
      feeds.clear()
    },
  }

  function eventReader({
    named,
    read,
  }: {
    readonly named: boolean
    readonly read: (queue: string, feed: QueueFeed, onReady: () => void) => FeedReader
  }): EventReader {
    const readers: (readonly [queue: string, reader: FeedReader])[] = []
    const used = new Map<string, OpenFeed>()
    /** The reader that is asked first. Each queue has its turn. */
    let turn = 0
    let isStopped = false
    let isReady = true
    let wakeWaiting = (): void => {}
    const wake = (): void => {
      isReady = true
      wakeWaiting()
    }
    const positions = (): Positions => new Map(readers.map(([queue, reader]) => [queue, reader.position()]))
    const cursor = (): string => encodeCursor(positions(), { named })

    async function include(queue: string): Promise<void> {
      if (isStopped || used.has(queue)) return
      const opened = use(queue)
      used.set(queue, opened)
      const feed = await opened.feed
      if (!isStopped) readers.push([queue, read(queue, feed, wake)])
    }

    return {
      cursor,
      positions,
      wake,
      fromStart: () => readers.some(([, reader]) => reader.fromStart),
      async include(queues) {
        await Promise.all(queues.map(include))
        wake()
      },
      next() {
        for (let n = 0; n < readers.length; n++) {
          const [queue, reader] = readers[(turn + n) % readers.length] ?? ['', undefined]
          const item = reader?.next()
          if (item === undefined) continue
          turn = (turn + n + 1) % readers.length
          return item === 'gap'
            ? { kind: 'gap', queue, cursor: cursor() }
            : { kind: 'event', queue, event: item, cursor: cursor() }
        }
        isReady = false
        return undefined
      },
      wait(signal, ms) {
        if (isReady || signal.aborted) return Promise.resolve(true)
        return new Promise((resolve) => {
          const settle = (isWoken: boolean): void => {
            wakeWaiting = () => {}
            cancel?.()
            signal.removeEventListener('abort', wakeNow)
            resolve(isWoken)
          }
          const wakeNow = (): void => settle(true)
          const cancel = ms === undefined ? undefined : afterTime(ms, () => settle(false))
          wakeWaiting = wakeNow
          signal.addEventListener('abort', wakeNow)
        })
      },
      stop() {
        if (isStopped) return
        isStopped = true
        for (const [, reader] of readers) reader.stop()
        for (const [queue, opened] of used) leave(queue, opened)
      },
    }
  }
}
