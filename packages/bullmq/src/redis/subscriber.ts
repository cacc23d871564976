// A connection that is subscribed to channels, and subscribes again whenever it was lost. Messages between processes go
// through it: cancels (cancel/subscriber.ts) and fleet notifications (fleet/notifications.ts).
import type { Log } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { blockingConnection } from '../connection.ts'

export interface SubscriberOptions {
  readonly redisUrl: string
  readonly channels: readonly string[]
  readonly onMessage: (channel: string, message: string) => void
  /** Called after each subscription, the first one included: messages sent before it may have been missed. */
  readonly onSubscribed: () => void
  readonly log: Log
}

export interface Subscriber {
  isConnected(): boolean
  close(): void
}

/** Opens one connection, and waits for Redis as long as it takes. */
export function openSubscriber({ redisUrl, channels, onMessage, onSubscribed, log }: SubscriberOptions): Subscriber {
  const redis: Redis = blockingConnection(redisUrl, log)
  redis.on('message', onMessage)
  // ioredis restores subscriptions by itself, but does not say when. The answer to this command does.
  redis.on('ready', () => {
    redis
      .subscribe(...channels)
      .then(onSubscribed)
      .catch((err: unknown) => log.debug({ err }, 'not subscribed: connection lost'))
  })
  return { isConnected: () => redis.status === 'ready', close: () => redis.disconnect() }
}
