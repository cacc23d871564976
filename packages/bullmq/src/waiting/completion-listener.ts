// Wakes callers that are waiting for a task to end. Follows the queue's event stream while any caller is waiting.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@bullpen/contract'
import { endedJob } from '../internals/event-stream.ts'
import type { Commander } from '../scripts/script.ts'

/** How long one read of the stream may block, in ms. */
const BLOCK_MS = 5_000
/**
 * How often a waiting caller is woken without an event, in ms. Even if the stream was trimmed or the connection was lost, the
 * caller is therefore woken, although late.
 */
export const RECHECK_MS = 1_000
/** The maximum number of entries per read. */
const PAGE_SIZE = 1_000
const RETRY_MS = 200

type Wake = () => void

export interface Wait {
  /** Once this promise resolves, no later event is missed. The promise stays pending while Redis is unreachable. */
  readonly following: Promise<void>
  stop(): void
}

export interface CompletionListener {
  /** Calls `wake` when the task's event arrives, and once per second in case the event was missed, until `stop` is called. */
  wait(id: string, wake: Wake): Wait
  close(): void
}

/**
 * Opens a listener. `connect` is called to open a connection that may block in a command, which is closed when no caller is
 * waiting.
 */
export function openCompletionListener(events: string, connect: () => Commander, log: Log): CompletionListener {
  const waiting = new Map<string, Set<Wake>>()
  let reader: { readonly redis: Commander; readonly following: Promise<void> } | undefined

  const startReader = (): { redis: Commander; following: Promise<void> } => {
    const redis = connect()
    const following = newestEvent(redis, events)
      .then((from) => {
        void read(redis, from)
      })
      // Without the stream, the once-per-second recheck wakes the callers.
      .catch((err: unknown) => log.warn({ err }, 'event stream could not be read; waiting callers are notified late'))
    return { redis, following }
  }

  const read = async (redis: Commander, from: string): Promise<void> => {
    let last = from
    while (reader?.redis === redis) {
      try {
        const answer = await redis.xread('COUNT', PAGE_SIZE, 'BLOCK', BLOCK_MS, 'STREAMS', events, last)
        for (const [entry, fields] of answer?.[0]?.[1] ?? []) {
          last = entry
          const id = endedJob(fields)
          if (id !== undefined) for (const wake of waiting.get(id) ?? []) wake()
        }
      } catch (err) {
        if (reader?.redis !== redis) return
        log.debug({ err }, 'reading the event stream failed')
        await sleep(RETRY_MS)
      }
    }
  }

  const stopReader = (): void => {
    const stopped = reader
    reader = undefined
    stopped?.redis.disconnect()
  }

  return {
    wait(id, wake) {
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
      const recheck = setInterval(wake, RECHECK_MS)
      reader ??= startReader()
      const stop = (): void => {
        clearInterval(recheck)
        wakes.delete(wake)
        if (wakes.size === 0 && waiting.get(id) === wakes) waiting.delete(id)
        if (waiting.size === 0) stopReader()
      }
      return { following: reader.following, stop }
    },
    close: stopReader,
  }
}

/** Returns the id to read after, so that no event after this call is missed. */
async function newestEvent(redis: Commander, events: string): Promise<string> {
  const [newest] = await redis.xrevrange(events, '+', '-', 'COUNT', 1)
  return newest?.[0] ?? '0-0'
}
