// Reads the stream of one queue's events once, for all of a process's readers.
//
// The feed holds a copy of the events that the store keeps, the window, and adds what follows. Readers only have a position in the
// window, so that a reader costs the store nothing, a slow one takes no memory, and none of them waits for another. If a reader's
// position is no longer in the window, its next item is a gap, unless none of the dropped events was for this reader.
import type { GroupId, TaskId } from '@bullpen/contract'
import { type EventPage, type EventStream, STREAM_START, type StoredEvent } from '../ports/events.ts'
import { compareEventIds } from './event-ids.ts'

/** How many events one call to the store returns while the window is filled. */
const PAGE_SIZE = 1_000

export interface QueueFeedOptions {
  readonly stream: EventStream
  /** How many events the window holds. */
  readonly limit: number
}

export interface FeedReaderOptions {
  /**
   * The id after which the reader begins. By default, it begins after `since`, at the task's newest `enqueued` event, or with the next
   * event.
   */
  readonly after: string | undefined
  /** Selects the events of one task, or of the members of one group. */
  readonly subject?: TaskId | GroupId | undefined
  /**
   * The id after which a reader without a position begins, whether or not the stream has reached this id. After a gap, the reader goes on
   * with the oldest event that is kept. A reader without this option goes on with the next event.
   */
  readonly since?: string | undefined
  /** Selects events. By default, all are selected. */
  readonly matches?: ((event: StoredEvent) => boolean) | undefined
  /** Called when `next` may return something again. */
  readonly onReady: () => void
}

export interface FeedReader {
  /** Returns the next event, `gap` if events may be missing before the next one, and undefined if there is none yet. */
  next(): StoredEvent | 'gap' | undefined
  /** The id up to which the reader has passed the stream. */
  position(): string
  /** Whether the reader began at the task's `enqueued` event. */
  readonly fromStart: boolean
  stop(): void
}

interface Reader {
  /** The number of the next event to look at. */
  at: number
  /** Whether events that the reader has not received may be missing from the window. */
  hasMissed: boolean
  readonly onReady: () => void
}

export class QueueFeed {
  readonly #stream: EventStream
  readonly #limit: number
  /** The events of the window. The first one has the number `#base`. */
  #events: StoredEvent[] = []
  #base = 0
  /** The numbers of the events in the window that concern each task and each group, in ascending order. */
  readonly #ofSubject = new Map<string, number[]>()
  /** Every event after this id is in the window. */
  #floor = STREAM_START
  /** The id of the newest event that the feed has seen. */
  #last = STREAM_START
  readonly #readers = new Set<Reader>()
  readonly #subjectReaders = new Map<string, Set<Reader>>()
  #stopFollowing = (): void => {}

  private constructor({ stream, limit }: QueueFeedOptions) {
    this.#stream = stream
    this.#limit = limit
  }

  /** Fills the window, which takes one round trip for every 1,000 events that the store keeps, and follows the stream. */
  static async open(options: QueueFeedOptions): Promise<QueueFeed> {
    const feed = new QueueFeed(options)
    await feed.#fill()
    return feed
  }

  async #fill(): Promise<void> {
    const before = await this.#stream.bounds()
    for (let after: string | undefined = STREAM_START; after !== undefined; ) {
      const { events, next }: EventPage = await this.#stream.read(after, PAGE_SIZE)
      this.#add(events)
      after = next
    }
    const oldest = this.#events[0]?.id
    // Events that were added to an empty stream during the reads are no sign that others were dropped.
    const wasEmpty = before.first === undefined && oldest !== undefined
    const { first, isComplete } = wasEmpty ? await this.#stream.bounds() : before
    const wasTrimmed = !isComplete || first !== oldest
    if (this.#floor === STREAM_START && wasTrimmed) this.#floor = oldest ?? before.last
    if (compareEventIds(before.last, this.#last) > 0) this.#last = before.last
    this.#stopFollowing = this.#stream.follow(this.#last, {
      onEvents: (events) => this.#receive(events),
      onLost: () => this.#lose(),
    })
  }

  get readers(): number {
    return this.#readers.size + this.#subjectReaders.size
  }

  close(): void {
    this.#stopFollowing()
  }

  reader({ after: given, subject, since, matches, onReady }: FeedReaderOptions): FeedReader {
    const after = given ?? this.#reached(since)
    const enqueuedAt = after === undefined && subject !== undefined ? this.#enqueuedAt(subject) : undefined
    const at = enqueuedAt ?? this.#numberAfter(after)
    const reader: Reader = { at, hasMissed: at < this.#base, onReady }
    const readers = this.#readersOf(subject)
    readers.add(reader)
    let position = after ?? this.#last
    if (enqueuedAt !== undefined) position = this.#events[enqueuedAt - this.#base - 1]?.id ?? this.#floor
    return {
      fromStart: enqueuedAt !== undefined,
      position: () => position,
      next: () => {
        // The reader of a quiet subject stays behind the window without having missed anything.
        if (reader.hasMissed || (subject === undefined && reader.at < this.#base)) {
          reader.hasMissed = false
          reader.at = since === undefined ? this.#end : this.#base
          position = since === undefined ? this.#last : this.#floor
          return 'gap'
        }
        const found = subject === undefined ? this.#find(reader.at, matches) : this.#findOfSubject(reader.at, subject)
        reader.at = found === undefined ? this.#end : found + 1
        const event = found === undefined ? undefined : this.#events[found - this.#base]
        position = event?.id ?? this.#last
        return event
      },
      stop: () => {
        readers.delete(reader)
        if (subject !== undefined && readers.size === 0) this.#subjectReaders.delete(subject)
      },
    }
  }

  #readersOf(subject: string | undefined): Set<Reader> {
    if (subject === undefined) return this.#readers
    const readers = this.#subjectReaders.get(subject) ?? new Set()
    this.#subjectReaders.set(subject, readers)
    return readers
  }

  /** Returns this id, or the newest one that the stream has reached if that is older. */
  #reached(id: string | undefined): string | undefined {
    return id !== undefined && compareEventIds(id, this.#last) > 0 ? this.#last : id
  }

  /** The number of the event that follows. */
  get #end(): number {
    return this.#base + this.#events.length
  }

  #enqueuedAt(taskId: string): number | undefined {
    return this.#ofSubject
      .get(taskId)
      ?.findLast((number) => this.#events[number - this.#base]?.body.type === 'enqueued')
  }

  /** Returns the number of the first event after this id. If events after the id may be missing, the number is below the window. */
  #numberAfter(after: string | undefined): number {
    if (after === undefined || compareEventIds(after, this.#last) === 0) return this.#end
    // An id that the stream has not reached comes from data that the store has lost.
    if (compareEventIds(after, this.#floor) < 0 || compareEventIds(after, this.#last) > 0) return this.#base - 1
    let [low, high] = [0, this.#events.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareEventIds(this.#events[middle]?.id ?? after, after) > 0) high = middle
      else low = middle + 1
    }
    return this.#base + low
  }

  #find(from: number, matches: ((event: StoredEvent) => boolean) | undefined): number | undefined {
    for (let number = from; number < this.#end; number++) {
      const event = this.#events[number - this.#base]
      if (event !== undefined && (matches === undefined || matches(event))) return number
    }
    return undefined
  }

  #findOfSubject(from: number, subject: string): number | undefined {
    const numbers = this.#ofSubject.get(subject) ?? []
    let [low, high] = [0, numbers.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((numbers[middle] ?? from) >= from) high = middle
      else low = middle + 1
    }
    return numbers[low]
  }

  #receive(events: readonly StoredEvent[]): void {
    this.#add(events)
    for (const reader of this.#readers) reader.onReady()
    for (const subject of new Set(events.flatMap(subjectsOf))) {
      for (const reader of this.#subjectReaders.get(subject) ?? []) reader.onReady()
    }
  }

  #add(events: readonly StoredEvent[]): void {
    for (const event of events) {
      for (const subject of subjectsOf(event)) {
        const numbers = this.#ofSubject.get(subject)
        if (numbers === undefined) this.#ofSubject.set(subject, [this.#end])
        else numbers.push(this.#end)
      }
      this.#events.push(event)
      this.#last = event.id
    }
    // The oldest events are dropped in blocks, because each removal moves all others.
    if (this.#events.length > this.#limit * 1.1) this.#drop(this.#events.length - this.#limit)
  }

  #drop(count: number): void {
    const dropped = this.#events.splice(0, count)
    const first = this.#base
    this.#base += dropped.length
    this.#floor = dropped.at(-1)?.id ?? this.#floor
    const counts = new Map<string, number>()
    for (const [i, event] of dropped.entries()) {
      for (const subject of subjectsOf(event)) {
        for (const reader of this.#subjectReaders.get(subject) ?? []) reader.hasMissed ||= reader.at <= first + i
        counts.set(subject, (counts.get(subject) ?? 0) + 1)
      }
    }
    for (const [subject, count] of counts) {
      const numbers = this.#ofSubject.get(subject)
      numbers?.splice(0, count)
      if (numbers?.length === 0) this.#ofSubject.delete(subject)
    }
  }

  /** Empties the window, so that the next item of every reader is a gap. */
  #lose(): void {
    this.#base = this.#end
    this.#events = []
    this.#ofSubject.clear()
    this.#floor = this.#last
    for (const readers of [this.#readers, ...this.#subjectReaders.values()]) {
      for (const reader of readers) {
        reader.hasMissed = true
        reader.onReady()
      }
    }
  }
}

/** Returns the ids of the task and the group that an event concerns. */
function subjectsOf({ taskId, body: { group } }: StoredEvent): readonly string[] {
  return group === undefined ? [taskId] : [taskId, group.id]
}
