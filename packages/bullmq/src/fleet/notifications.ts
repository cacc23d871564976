// Listens to the fleet's channels. One announces the worker or queue that a command concerns, and the other announces the
// commands to which a worker has responded. The first listener opens a connection, which all listeners share.
import type { Log } from '@bullpen/contract'
import type { FleetKeys } from '../keys.ts'
import { openSubscriber, type Subscriber } from '../redis/subscriber.ts'

/** Builds a message for the notifications channel. */
export const workerMessage = (worker: string): string => `worker ${worker}`
export const queueMessage = (queue: string): string => `queue ${queue}`
/** The message about a command for every worker. */
export const FLEET_MESSAGE = 'fleet'
export const queueOf = (message: string): string | undefined => /^queue (.*)$/.exec(message)?.[1]

/** `undefined` means that messages may have been missed. */
type Listener = (message: string | undefined) => void

export interface Notifications {
  /**
   * Calls `listener` with every message. Also calls it with undefined once the channel is subscribed and whenever the connection
   * is restored.
   */
  listen(channel: string, listener: Listener): () => void
  close(): void
}

export function openNotifications(redisUrl: string, { notifications, responses }: FleetKeys, log: Log): Notifications {
  const listeners = new Map<string, Set<Listener>>()
  let subscriber: Subscriber | undefined

  const open = (): Subscriber =>
    openSubscriber({
      redisUrl,
      channels: [notifications, responses],
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
      // If the connection is already in use, `onSubscribed` has been called before this listener was added.
      if (subscriber?.isConnected()) queueMicrotask(() => ofChannel.has(listener) && listener(undefined))
      subscriber ??= open()
      return () => {
        ofChannel.delete(listener)
      }
    },
    close: () => subscriber?.close(),
  }
}
