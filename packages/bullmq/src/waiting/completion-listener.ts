// Wakes callers that are waiting for a task to end. Follows BullMQ's event stream of the queue while any caller is waiting.
import { endedJob } from '../internals/event-stream.ts'
import type { QueueKeys } from '../keys.ts'
import { newestId, type StreamFollower, type StreamListener } from '../redis/stream-follower.ts'
import type { Commander } from '../scripts/script.ts'

/** How long a queue is followed after its last caller has gone, in ms, because the next caller usually arrives soon. */
const KEPT_MS = 5_000

/**
 * How often a waiting caller looks at its task without an event, in ms, because a program without Bullpen can delete tasks without
 * adding an event.
 */
const RECHECK_MS = 10_000

/** How many events BullMQ keeps in a queue for which nobody has set `streams.events.maxLen`. */
const DEFAULT_KEPT = 10_000

type Wake = () => void

export interface Wait {
  /** Once this promise resolves, no later event is missed. Rejects if Redis can't be read. */
  readonly following: Promise<void>
  stop(): void
}

export interface CompletionListener {
  /**
   * Calls `wake` when the task has ended, until `stop` is called. Also calls `wake` if the task may have ended unnoticed: after the
   * connection was lost, if Redis has dropped entries of the stream before they were read, and every 10 s.
   */
  wait(id: string, wake: Wake): Wait
  close(): void
}

export interface CompletionListenerOptions {
  readonly redis: Commander
  readonly keys: Pick<QueueKeys, 'events' | 'meta'>
  readonly follower: StreamFollower
}

export function openCompletionListener({ redis, keys, follower }: CompletionListenerOptions): CompletionListener {
  const waiting = new Map<string, Set<Wake>>()
  let current: Following | undefined
  let stopping: NodeJS.Timeout | undefined

  const wakeAll = (): void => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake()
  }
  const onEntries: StreamListener['onEntries'] = (entries) => {
    for (const [, fields] of entries) {
      const id = endedJob(fields)
      if (id !== undefined) for (const wake of waiting.get(id) ?? []) wake()
    }
  }

  const start = (): Following => {
    const own: Following = { started: Promise.resolve(), stop: () => {} }
    own.started = Promise.all([newestId(redis, keys.events), redis.hget(keys.meta, 'opts.maxLenEvents')]).then(
      ([from, kept]) => {
        if (current !== own) return
        const listener = { onEntries, onMissed: wakeAll }
        own.stop = follower.follow(keys.events, from, listener, Number(kept ?? DEFAULT_KEPT))
      },
      (error: unknown) => {
        // The next caller tries again.
        if (current === own) current = undefined
        throw error
      },
    )
    return own
  }

  const stop = (): void => {
    clearTimeout(stopping)
    stopping = undefined
    const stopped = current
    current = undefined
    stopped?.stop()
  }

  return {
    wait(id, wake) {
      clearTimeout(stopping)
      stopping = undefined
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
      const recheck = setInterval(wake, RECHECK_MS)
      current ??= start()
      const stopWaiting = (): void => {
        clearInterval(recheck)
        wakes.delete(wake)
        if (wakes.size === 0 && waiting.get(id) === wakes) waiting.delete(id)
        if (waiting.size === 0) stopping ??= setTimeout(stop, KEPT_MS).unref()
      }
      return { following: current.started, stop: stopWaiting }
    },
    close: stop,
  }
}

interface Following {
  /** Resolves once no later event is missed. */
  started: Promise<void>
  stop: () => void
}
