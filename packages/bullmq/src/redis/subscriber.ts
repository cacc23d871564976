// Subscribes to channels over one connection per Redis address. The whole process shares that connection, which reconnects and
// subscribes again whenever it is lost. It carries the messages between processes: cancellations (cancel/by-id.ts), fleet
// notifications (fleet/notifications.ts), and work for the leader (leader/leader.ts).
import type { Log } from '@bullpen/contract'
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
  /** Whether the channels are subscribed. As long as this returns true, no message is missed. */
  isConnected(): boolean
  close(): void
}

type Member = Pick<SubscriberOptions, 'channels' | 'onMessage' | 'onSubscribed'>

interface SharedConnection {
  add(member: Member): Subscriber
}

/** This process's connections, by URL. A connection exists as long as it has members. */
const connections = new Map<string, SharedConnection>()

/**
 * Shares this process's Redis connection for messages, opening it if necessary. The connection keeps retrying until Redis is
 * reachable, logs to the logger supplied by the first caller, and closes when its last member closes.
 */
export function openSubscriber({ redisUrl, log, ...member }: SubscriberOptions): Subscriber {
  const known = connections.get(redisUrl)
  if (known !== undefined) return known.add(member)
  const opened = openConnection(redisUrl, log, () => connections.delete(redisUrl))
  connections.set(redisUrl, opened)
  return opened.add(member)
}

function openConnection(redisUrl: string, log: Log, onUnused: () => void): SharedConnection {
  const redis = subscriberConnection(redisUrl, log)
  const members = new Map<string, Set<Member>>()
  const all = new Set<Member>()
  /** The members whose subscriptions Redis has confirmed since the connection was last established. */
  const subscribed = new Set<Member>()

  const subscribe = (member: Member): void => {
    redis
      .subscribe(...member.channels)
      .then(() => {
        // The member may have been closed before Redis responded.
        if (!all.has(member)) return
        subscribed.add(member)
        member.onSubscribed()
      })
      .catch((err: unknown) => log.debug({ err }, 'not subscribed: connection lost'))
  }
  redis.on('message', (channel, message) => {
    for (const member of members.get(channel) ?? []) member.onMessage(channel, message)
  })
  redis.on('close', () => subscribed.clear())
  redis.on('ready', () => all.forEach(subscribe))

  const remove = (member: Member): void => {
    if (!all.delete(member)) return
    subscribed.delete(member)
    const unused = member.channels.filter((channel) => {
      const ofChannel = members.get(channel)
      ofChannel?.delete(member)
      return ofChannel?.size === 0 && members.delete(channel)
    })
    if (all.size === 0) {
      onUnused()
      redis.disconnect()
    } else if (redis.status === 'ready' && unused.length > 0) redis.unsubscribe(...unused).catch(() => {})
  }

  return {
    add(member) {
      all.add(member)
      for (const channel of member.channels) members.set(channel, (members.get(channel) ?? new Set()).add(member))
      if (redis.status === 'ready') subscribe(member)
      return { isConnected: () => subscribed.has(member), close: () => remove(member) }
    },
  }
}
