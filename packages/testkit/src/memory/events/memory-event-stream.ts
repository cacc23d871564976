// The stream of one queue's events in memory.
import type { EventBody } from '@bullpen/contract/internal'
import { type Clock, compareEventIds, type EventStream, STREAM_START, type StoredEvent } from '@bullpen/engine/internal'
import type { Outage } from '../outage.ts'

/** How long an event is kept, in ms. */
const AGE_MS = 3_600_000

export interface MemoryEventStream extends EventStream {
  /** Adds an event, and drops the oldest ones beyond `count`. */
  add(taskId: StoredEvent['taskId'], body: EventBody, count: number): void
  /** Passes no event on to followers until the returned function is called. */
  delay(): () => void
}

export function memoryEventStream(clock: Pick<Clock, 'now'>, outage: Pick<Outage, 'check'>): MemoryEventStream {
  /** Each of these functions passes on the events that its follower has not received. */
  const followers = new Set<() => void>()
  let events: StoredEvent[] = []
  let last = STREAM_START
  let added = 0
  let isDelayed = false

  const nextId = (): string => {
    const now = Math.floor(clock.now())
    const [ms = 0, number = 0] = last.split('-').map(Number)
    return now > ms ? `${now}-0` : `${ms}-${number + 1}`
  }

  const dropOld = (): void => {
    const before = `${Math.max(0, Math.floor(clock.now()) - AGE_MS)}-0`
    events = events.filter(({ id }) => compareEventIds(id, before) >= 0)
  }

  return {
    add(taskId, body, count) {
      last = nextId()
      added++
      // Events are stored as JSON.
      const event: StoredEvent = { id: last, taskId, body: JSON.parse(JSON.stringify(body)) }
      events = [...events, event].slice(-count)
      for (const pass of followers) pass()
    },

    delay() {
      isDelayed = true
      return () => {
        isDelayed = false
        for (const pass of followers) pass()
      }
    },

    async bounds() {
      outage.check()
      dropOld()
      return { first: events[0]?.id, last, isComplete: added === events.length }
    },

    async read(after, limit) {
      outage.check()
      dropOld()
      const page = events.filter(({ id }) => compareEventIds(id, after) > 0).slice(0, limit)
      return { events: page, next: page.length === limit ? page.at(-1)?.id : undefined }
    },

    follow(after, { onEvents }) {
      let position = after
      let isWaiting = false
      const pass = (): void => {
        if (isWaiting) return
        isWaiting = true
        // Reading takes time in a real broker, too.
        queueMicrotask(() => {
          isWaiting = false
          if (isDelayed) return
          const next = events.filter(({ id }) => compareEventIds(id, position) > 0)
          position = next.at(-1)?.id ?? position
          if (followers.has(pass) && next.length > 0) onEvents(next)
        })
      }
      followers.add(pass)
      pass()
      return () => followers.delete(pass)
    },
  }
}
