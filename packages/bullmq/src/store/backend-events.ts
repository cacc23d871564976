// BullMQ's backend over Bullpen's own scripts: the method with which a QueueEvents reads the queue's events.
//
// The scripts always add the events of ends, and of what is rare. Those of moves (`added`, `waiting`, `active`, `delayed`) are for readers
// only, but would take more than a tenth of the time that Redis spends on a task. In the queues of a namespace, they are added until a time
// that is stored in the hash `meta`, and each reader keeps it ahead, as does the leader while it counts a queue in several pages
// (../internals/status/bytes-recount.ts). Any other queue has all events.
import type { RedisQueueBackend } from 'bullmq'
import type { ScriptRunner } from '../scripts/script.ts'
import { addAllEventsScript } from './scripts.ts'

/** The field of the hash `meta`, in ms since 1970 by Redis's clock. '0' if nobody has read the queue's events. */
export const ALL_EVENTS_UNTIL = 'allEventsUntil'

/** For how long the events of moves are added for a reader, in ms, and how often it asks again. */
const ADDED_FOR_MS = 60_000
const REPEAT_MS = 10_000

/**
 * Returns a function that a reader calls before each read of the queue's events. Once its promise has resolved, all events are added for at
 * least 50 s. Takes a round trip every ten seconds.
 */
export function askForAllEvents(run: ScriptRunner, meta: string): () => Promise<void> {
  let askedAt = Number.NEGATIVE_INFINITY
  return async () => {
    const now = performance.now()
    if (now - askedAt < REPEAT_MS) return
    await run(addAllEventsScript, { meta }, { forMs: ADDED_FOR_MS })
    askedAt = now
  }
}

export function eventMethods(backend: RedisQueueBackend, run: ScriptRunner): Pick<RedisQueueBackend, 'readEvents'> {
  const readEvents = backend.readEvents.bind(backend)
  const ask = askForAllEvents(run, backend.toKey('meta'))

  return {
    async readEvents(id, blockMs) {
      await ask()
      return readEvents(id, blockMs > 0 ? Math.min(blockMs, REPEAT_MS) : REPEAT_MS)
    },
  }
}
