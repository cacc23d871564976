// The feed against a model: whatever happens, each reader receives the events after its position once and in order, and events are
// missing only after a gap.
import type { GroupId, TaskId } from '@bullpen/contract'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type EventListener, STREAM_START, type StoredEvent } from '../ports/events.ts'
import { createEventFeeds } from './event-feeds.ts'
import { compareEventIds } from './event-ids.ts'
import { type FeedReader, QueueFeed } from './queue-feed.ts'

const TASKS = ['q-a', 'q-b', 'q-c'] as const
/** The first two tasks are its members. */
const GROUP = { id: 'group-1' as GroupId, member: 0 }
/** What a reader may be about. */
const SUBJECTS = [...TASKS, GROUP.id]
const LIMIT = 10

/** A stream that keeps `kept` events, which a test changes. */
function streamOf() {
  const all: StoredEvent[] = []
  let dropped = 0
  const listeners = new Set<EventListener>()
  return {
    all,
    add(task: number): void {
      const number = task % TASKS.length
      const taskId = TASKS[number] as TaskId
      const body = { type: 'enqueued', task: 'a.b', ...(number < 2 && { group: GROUP }) } as const
      const event: StoredEvent = { id: `${1_000 + all.length}-0`, taskId, body }
      all.push(event)
      for (const { onEvents } of listeners) onEvents([event])
    },
    trim(count: number): void {
      dropped = Math.max(dropped, all.length - count)
    },
    lose(): void {
      for (const { onLost } of listeners) onLost()
    },
    followers: () => listeners.size,
    stream: {
      bounds: async () => ({
        first: all[dropped]?.id,
        last: all.at(-1)?.id ?? STREAM_START,
        isComplete: dropped === 0,
      }),
      async read(after: string, limit: number) {
        const rest = all.slice(dropped).filter(({ id }) => compareEventIds(id, after) > 0)
        return { events: rest.slice(0, limit), next: rest.length > limit ? rest[limit - 1]?.id : undefined }
      },
      follow(_after: string, listener: EventListener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
  }
}

type Step =
  | { readonly do: 'add'; readonly task: number }
  | { readonly do: 'open'; readonly subject: number | undefined; readonly back: number }
  | { readonly do: 'read'; readonly reader: number; readonly events: number }
  | { readonly do: 'lose' }

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('add' as const), task: fc.nat(2) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('open' as const),
        subject: fc.option(fc.nat(3), { nil: undefined }),
        back: fc.nat(20),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('read' as const),
        reader: fc.nat(9),
        events: fc.integer({ min: 1, max: 6 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const) }) },
  ),
  { maxLength: 80 },
) as fc.Arbitrary<readonly Step[]>

it('each reader receives the events after its position once and in order, and misses some only after a gap', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(30), fc.nat(30), steps, async (before, kept, script) => {
      const model = streamOf()
      for (let n = 0; n < before; n++) model.add(n)
      model.trim(kept)
      const feed = await QueueFeed.open({ stream: model.stream, limit: LIMIT })
      /** The first event that must be in the window. */
      let windowStart = Math.max(0, before - Math.min(kept, LIMIT))
      const readers: {
        readonly reader: FeedReader
        readonly subject: string | undefined
        expected: number
        mayMiss: boolean
        /** Whether the reader goes on with the oldest event of the window, which may have a few more than `LIMIT`. */
        hasGap: boolean
      }[] = []
      for (const step of script) {
        if (step.do === 'add') {
          model.add(step.task)
          windowStart = Math.max(windowStart, model.all.length - LIMIT)
        } else if (step.do === 'lose') {
          model.lose()
          windowStart = model.all.length
          for (const each of readers) each.mayMiss = true
        } else if (step.do === 'open') {
          const expected = Math.max(0, model.all.length - step.back)
          const after = model.all[expected - 1]?.id ?? STREAM_START
          const subject = step.subject === undefined ? undefined : (SUBJECTS[step.subject] as TaskId | GroupId)
          const since = subject === GROUP.id ? STREAM_START : undefined
          const reader = feed.reader({ after, subject, since, onReady: () => {} })
          readers.push({ reader, subject, expected, mayMiss: expected <= windowStart, hasGap: false })
        } else {
          const read = readers[step.reader % Math.max(1, readers.length)]
          for (let n = 0; read !== undefined && n < step.events; n++) {
            const item = read.reader.next()
            const isOwn = ({ taskId, body }: StoredEvent): boolean =>
              read.subject === undefined || taskId === read.subject || body.group?.id === read.subject
            const index = model.all.findIndex((each, i) => i >= read.expected && isOwn(each))
            if (item === 'gap') {
              expect(read.mayMiss || (index >= 0 && index < windowStart)).toBe(true)
              if (read.subject === GROUP.id) read.hasGap = true
              else read.expected = model.all.length
              read.mayMiss = false
            } else if (item === undefined) {
              const from = read.hasGap ? Math.max(read.expected, windowStart) : read.expected
              expect(model.all.slice(from).filter(isOwn)).toEqual([])
              break
            } else {
              const found = read.hasGap ? model.all.indexOf(item) : index
              const first = model.all.findIndex((each, i) => i >= windowStart && isOwn(each))
              expect(item).toBe(model.all[found])
              expect(found).toBeGreaterThanOrEqual(read.expected)
              if (read.hasGap && first >= 0) expect(found).toBeLessThanOrEqual(Math.max(first, read.expected))
              expect(isOwn(item)).toBe(true)
              expect(read.reader.position()).toBe(item.id)
              read.expected = found + 1
              read.hasGap = false
            }
          }
        }
      }
      feed.close()
    }),
    { numRuns: 500 },
  )
})

it('a reader without a position begins at its task’s newest enqueued event, or with the next event', async () => {
  const model = streamOf()
  for (let n = 0; n < 5; n++) model.add(n)
  const feed = await QueueFeed.open({ stream: model.stream, limit: LIMIT })
  const own = feed.reader({ after: undefined, subject: TASKS[0] as TaskId, onReady: () => {} })
  expect([own.fromStart, own.next(), own.next()]).toEqual([true, model.all[3], undefined])
  const all = feed.reader({ after: undefined, onReady: () => {} })
  expect([all.fromStart, all.next()]).toEqual([false, undefined])
  model.add(0)
  expect(all.next()).toBe(model.all[5])
})

it('the reader of a quiet task misses nothing when the events of other tasks fill the window', async () => {
  const model = streamOf()
  model.add(0)
  const feed = await QueueFeed.open({ stream: model.stream, limit: LIMIT })
  const reader = feed.reader({ after: undefined, subject: TASKS[0] as TaskId, onReady: () => {} })
  expect([reader.next(), reader.next()]).toEqual([model.all[0], undefined])
  for (let n = 0; n < 50; n++) model.add(1)
  model.add(0)
  expect(reader.next()).toBe(model.all.at(-1))
  model.add(0)
  for (let n = 0; n < 50; n++) model.add(1)
  expect(reader.next()).toBe('gap')
})

it('a feed is opened once for all readers, and closed some time after the last one has gone', async () => {
  const model = streamOf()
  const timers: (() => void)[] = []
  const feeds = createEventFeeds({
    stream: () => model.stream,
    limit: () => LIMIT,
    after: (_, run) => {
      timers.push(run)
      return () => void timers.splice(timers.indexOf(run), 1)
    },
  })
  const readers = await Promise.all([1, 2, 3].map(() => feeds.open({ queues: ['q'] })))
  expect(model.followers()).toBe(1)
  for (const reader of readers) reader.stop()
  const again = await feeds.open({ queues: ['q'] })
  expect(timers).toEqual([])
  again.stop()
  for (const run of timers.splice(0)) run()
  await undefined
  expect(model.followers()).toBe(0)
  feeds.close()
})

it('events that are added to an empty stream while a feed opens cause no gap', async () => {
  const model = streamOf()
  const { bounds } = model.stream
  const stream = {
    ...model.stream,
    async bounds() {
      const found = await bounds()
      if (model.all.length === 0) model.add(0)
      return found
    },
  }
  const feed = await QueueFeed.open({ stream, limit: LIMIT })
  const reader = feed.reader({ after: undefined, subject: GROUP.id, since: '5-0', onReady: () => {} })
  expect(reader.next()).toBe(model.all[0])
  expect(reader.next()).toBeUndefined()
  reader.stop()
  feed.close()
})
