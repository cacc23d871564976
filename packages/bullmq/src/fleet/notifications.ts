// The fleet's channels: which worker or queue a command concerns, and which command was answered. One connection, opened with
// the first listener.
import type { Log } from '@bullpen/contract'
import type { FleetKeys } from '../keys.ts'
import { openSubscriber, type Subscriber } from '../redis/subscriber.ts'

/** The messages on the channel of notifications. */
export const workerMessage = (worker: string): string => `worker ${worker}`
export const queueMessage = (queue: string): string => `queue ${queue}`
export const queueOf = (message: string): string | undefined => /^queue (.*)$/.exec(message)?.[1]

/** `undefined`: messages may have been missed. */
type Listener = (message: string | undefined) => void

export interface Notifications {
  /** Calls `listener` with every message, and with undefined at first and after each loss of the connection. */
  listen(channel: string, listener: Listener): () => void
  close(): void
}

export function openNotifications(redisUrl: string, { notifications, answers }: FleetKeys, log: Log): Notifications {
  const listeners = new Map<string, Set<Listener>>()
  let subscriber: Subscriber | undefined

  const open = (): Subscriber =>
    openSubscriber({
      redisUrl,
      channels: [notifications, answers],
      onMessage(channel, message) {
        for (const listener of listeners.get(channel) ?? []) listener(message)
      },
      onSubscribed() {
        for (const ofChannel of listeners.values()) for (const listener of ofChannel) listener(undefined)
      },
      log,
    })

  return {
    listen(channel, listener) {
      const ofChannel = listeners.get(channel) ?? new Set()
      listeners.set(channel, ofChannel.add(listener))
      // `onSubscribed` has been called already on a connection that is in use.
      if (subscriber?.isConnected()) queueMicrotask(() => ofChannel.has(listener) && listener(undefined))
      subscriber ??= open()
      return () => {
        ofChannel.delete(listener)
      }
    },
    close: () => subscriber?.close(),
  }
}
