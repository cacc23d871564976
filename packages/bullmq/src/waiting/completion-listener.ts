// Settlements: wakes those who wait for a task's end, by following its queue's event stream while anybody waits.
import type { Log } from '@bullpen/contract'
import type { Redis } from 'ioredis'

/** How long one read of the stream may block, in ms. */
const BLOCK_MS = 5_000
/** A waiter also looks by itself this often, in ms: a trimmed stream or a lost connection then costs time, not an answer. */
export const RECHECK_MS = 1_000
const READ_AT_MOST = 1_000
const PAUSE_AFTER_ERROR_MS = 200

type Wake = () => void

export interface Watching {
  /** Once it resolves, no event is missed. It waits as long as Redis is away. */
  readonly followed: Promise<void>
  stop(): void
}

export interface CompletionListener {
  /** Calls `wake` whenever the task may have ended: on its event, and each second; until `stop` is called. */
  watch(id: string, wake: Wake): Watching
  close(): void
}

/** `connect` opens a connection that may block; it is closed when nobody waits any more. */
export function openCompletionListener(events: string, connect: () => Redis, log: Log): CompletionListener {
  const waiting = new Map<string, Set<Wake>>()
  let following: { readonly redis: Redis; readonly ready: Promise<void> } | undefined

  const follow = (): { redis: Redis; ready: Promise<void> } => {
    const redis = connect()
    const ready = newestEvent(redis, events)
      .then((from) => {
        void read(redis, from)
      })
      // Without the stream the waiter's own rechecks answer, later.
      .catch((err: unknown) => log.warn({ err }, 'the event stream is not followed; waiting callers are answered late'))
    return { redis, ready }
  }

  const read = async (redis: Redis, from: string): Promise<void> => {
    let last = from
    while (following?.redis === redis) {
      try {
        const answer = await redis.xread('COUNT', READ_AT_MOST, 'BLOCK', BLOCK_MS, 'STREAMS', events, last)
        for (const [entry, fields] of answer?.[0]?.[1] ?? []) {
          last = entry
          const id = endedTask(fields)
          if (id !== undefined) for (const wake of waiting.get(id) ?? []) wake()
        }
      } catch (err) {
        if (following?.redis !== redis) return
        log.debug({ err }, 'reading the event stream failed')
        await new Promise((resolve) => setTimeout(resolve, PAUSE_AFTER_ERROR_MS))
      }
    }
  }

  const stopFollowing = (): void => {
    const ended = following
    following = undefined
    ended?.redis.disconnect()
  }

  return {
    watch(id, wake) {
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
      const recheck = setInterval(wake, RECHECK_MS)
      following ??= follow()
      const stop = (): void => {
        clearInterval(recheck)
        wakes.delete(wake)
        if (wakes.size === 0 && waiting.get(id) === wakes) waiting.delete(id)
        if (waiting.size === 0) stopFollowing()
      }
      return { followed: following.ready, stop }
    },
    close: stopFollowing,
  }
}

/** The id after which to read: events that come later than this call are all seen. */
async function newestEvent(redis: Redis, events: string): Promise<string> {
  const [newest] = await redis.xrevrange(events, '+', '-', 'COUNT', 1)
  return newest?.[0] ?? '0-0'
}

function endedTask(fields: readonly string[]): string | undefined {
  let event: string | undefined
  let id: string | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] === 'event') event = fields[i + 1]
    if (fields[i] === 'jobId') id = fields[i + 1]
  }
  return event === 'completed' || event === 'failed' ? id : undefined
}
