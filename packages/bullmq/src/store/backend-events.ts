// BullMQ's backend over Bullpen's own scripts: the method with which a QueueEvents reads the queue's events.
//
// The scripts always add the events of ends, and of what is rare. Those of moves (`added`, `waiting`, `active`, `delayed`) are for readers
// only, but would take more than a tenth of the time that Redis spends on a task. In the queues of a namespace, they are added until a time
// that is stored in the hash `meta`, and each reader keeps it ahead, as does the leader while it counts a queue in several pages
// (../internals/status/bytes-recount.ts). Any other queue has all events.
import type { RedisQueueBackend } from 'bullmq'
import { type Commander, runScript, type ScriptRunner } from '../scripts/script.ts'
import { addAllEventsScript, omitMoveEventsScript } from './scripts.ts'

/** The field of the hash `meta`, in ms since 1970 by Redis's clock. */
export const ALL_EVENTS_UNTIL = 'allEventsUntil'

/** For how long the events of moves are added for a reader, in ms, and how often it asks again. */
const ADDED_FOR_MS = 60_000
const REPEAT_MS = 10_000
/** A reader that has asked before the queue was registered has asked again by then, in ms. */
const OMITTED_AFTER_MS = 15_000

/**
 * Returns a function that a reader calls before each read of the queue's events. Once its promise has resolved, all events are added for at
 * least 50 s. It resolves to whether all events have been added since the call before. Takes a round trip every ten seconds.
 */
export function askForAllEvents(run: ScriptRunner, meta: string): () => Promise<boolean> {
  let askedAt: number | undefined
  return async () => {
    const now = performance.now()
    const passedMs = now - (askedAt ?? now)
    if (askedAt !== undefined && passedMs < REPEAT_MS) return true
    await run(addAllEventsScript, { meta }, { forMs: ADDED_FOR_MS })
    askedAt = now
    return passedMs < ADDED_FOR_MS - REPEAT_MS
  }
}

/**
 * Lets the scripts omit the events of moves in a namespace's queue, 15 s after the first call at the earliest: nothing says before which
 * readers there are. Takes one round trip.
 */
export async function omitMoveEvents(redis: Commander, meta: string): Promise<void> {
  await runScript(redis, omitMoveEventsScript, { meta }, { afterMs: OMITTED_AFTER_MS })
}

export function eventMethods(backend: RedisQueueBackend, run: ScriptRunner): Pick<RedisQueueBackend, 'readEvents'> {
  const readEvents = backend.readEvents.bind(backend)
  const ask = askForAllEvents(run, backend.toKey('meta'))

  return {
    async readEvents(id, blockMs) {
      // If Redis refuses to write, the events of ends can still be read.
      await ask().catch(() => {})
      return readEvents(id, blockMs > 0 ? Math.min(blockMs, REPEAT_MS) : REPEAT_MS)
    },
  }
}
