// A connection that is subscribed to channels and subscribes again whenever it has been lost. It carries the messages between
// processes: cancels (cancel/by-id.ts) and fleet notifications (fleet/notifications.ts).
import type { Log } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { subscriberConnection } from '../connection.ts'

export interface SubscriberOptions {
  readonly redisUrl: string
  readonly channels: readonly string[]
  readonly onMessage: (channel: string, message: string) => void
  /** Called after each subscription, including the first one, because messages sent before it may have been missed. */
  readonly onSubscribed: () => void
  readonly log: Log
}

export interface Subscriber {
  isConnected(): boolean
  close(): void
}

/** Opens one connection, which keeps trying to reach Redis for as long as necessary. */
export function openSubscriber({ redisUrl, channels, onMessage, onSubscribed, log }: SubscriberOptions): Subscriber {
  const redis: Redis = subscriberConnection(redisUrl, log)
  redis.on('message', onMessage)
  redis.on('ready', () => {
    redis
      .subscribe(...channels)
      .then(onSubscribed)
      .catch((err: unknown) => log.debug({ err }, 'not subscribed: connection lost'))
  })
  return { isConnected: () => redis.status === 'ready', close: () => redis.disconnect() }
}
