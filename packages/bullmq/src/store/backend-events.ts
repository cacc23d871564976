// BullMQ's backend over Bullpen's own scripts: the method with which a QueueEvents reads the queue's events.
//
// The scripts always add the events of ends, and of what is rare. Those of moves (`added`, `waiting`, `active`, `delayed`) are for readers
// only, but would take more than a tenth of the time that Redis spends on a task. In the queues of a namespace, they are added until a time
// that is stored in the hash `meta`, and each reader keeps it ahead. Any other queue has all events.
import type { RedisQueueBackend } from 'bullmq'
import type { ScriptRunner } from '../scripts/script.ts'
import { addAllEventsScript } from './scripts.ts'

/** The field of the hash `meta`, in ms since 1970 by Redis's clock. '0' if nobody has read the queue's events. */
export const ALL_EVENTS_UNTIL = 'allEventsUntil'

/** For how long the events of moves are added for a reader, in ms, and how often it says that it still reads. */
const ADDED_FOR_MS = 60_000
const REPEAT_MS = 10_000

export function eventMethods(backend: RedisQueueBackend, run: ScriptRunner): Pick<RedisQueueBackend, 'readEvents'> {
  const readEvents = backend.readEvents.bind(backend)
  let saidAt = Number.NEGATIVE_INFINITY

  return {
    async readEvents(id, blockMs) {
      const now = performance.now()
      if (now - saidAt >= REPEAT_MS) {
        await run(addAllEventsScript, { meta: backend.toKey('meta') }, { forMs: ADDED_FOR_MS })
        saidAt = now
      }
      return readEvents(id, blockMs > 0 ? Math.min(blockMs, REPEAT_MS) : REPEAT_MS)
    },
  }
}
