// Wakes: the channels of the fleet, over one connection that is opened with the first listener.
import type { Log } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { blockingConnection } from '../connection.ts'
import type { FleetKeys } from '../keys.ts'

/** What is said on the channel of wakes. */
export const toProcess = (worker: string): string => `worker ${worker}`
export const toQueue = (queue: string): string => `queue ${queue}`
export const queueOf = (message: string): string | undefined => /^queue (.*)$/.exec(message)?.[1]

export interface Wakes {
  /** Hears every message, and undefined whenever some may have been missed: at first, and after each loss of the connection. */
  listen(channel: string, hear: (message: string | undefined) => void): () => void
  close(): void
}

export function followWakes(redisUrl: string, { wakes, answers }: FleetKeys, log: Log): Wakes {
  const listeners = new Map<string, Set<(message: string | undefined) => void>>()
  let redis: Redis | undefined

  const all = (): void => {
    for (const heard of listeners.values()) for (const hear of heard) hear(undefined)
  }
  const follow = (): Redis => {
    const opened = blockingConnection(redisUrl, log)
    opened.on('message', (channel: string, message: string) => {
      for (const hear of listeners.get(channel) ?? []) hear(message)
    })
    // Asked each time: only its answer says from when on nothing is missed.
    opened.on('ready', () => {
      opened
        .subscribe(wakes, answers)
        .then(all)
        .catch((err: unknown) => log.debug({ err }, 'not subscribed: the connection was lost'))
    })
    return opened
  }

  return {
    listen(channel, hear) {
      const heard = listeners.get(channel) ?? new Set()
      listeners.set(channel, heard.add(hear))
      // On a connection that stands already the first call would not come.
      if (redis?.status === 'ready') queueMicrotask(() => heard.has(hear) && hear(undefined))
      redis ??= follow()
      return () => {
        heard.delete(hear)
      }
    },
    close: () => redis?.disconnect(),
  }
}
