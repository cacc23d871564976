// Opens a connection that receives messages from a Redis Cluster. Every node receives every message, so one node is enough. When
// that node is lost, the connection moves to another one. ioredis also has a cluster subscriber, but it does not report when it
// has changed nodes, and if no node responds, it reconnects in a tight loop.
import { EventEmitter } from 'node:events'
import type { RedisClusterAddress, RedisNode } from '@bullpen/contract/internal'
import { Redis } from 'ioredis'
import { nodeOptions, retryDelay } from './redis-client.ts'
import { closeWhenSilent, OF_SUBSCRIBER } from './silence.ts'

/** A connection for messages. An ioredis client for a single server has the same methods. */
export interface MessageConnection {
  /** `ready` if the connection is established. */
  readonly status: string
  /** `ready`: the connection is established, and its channels must be subscribed. `close`: the connection was lost. */
  on(event: 'ready' | 'close', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  /** Closes the connection permanently. */
  disconnect(): void
}

export function openClusterSubscriber(
  address: RedisClusterAddress,
  random: () => number = Math.random,
): MessageConnection {
  const events = new EventEmitter()
  /** The nodes in the URL, and those that the cluster listed when it was last asked. */
  let nodes: readonly RedisNode[] = address.nodes
  let failures = 0
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let redis = connect()

  function connect(): Redis {
    const node = nodes[Math.floor(random() * nodes.length)]
    // The caller subscribes again whenever `events` emits `ready`, and this client never connects twice.
    const options = { ...nodeOptions(address), ...node, retryStrategy: null, autoResubscribe: false }
    const client = closeWhenSilent(new Redis(options), OF_SUBSCRIBER)
    // The clients that send commands report outages.
    client.on('error', () => {})
    client.on('message', (channel, message) => events.emit('message', channel, message))
    client.once('ready', () => {
      failures = 0
      findNodes(client).then(
        (found) => {
          nodes = [...address.nodes, ...found]
        },
        () => {},
      )
      events.emit('ready')
    })
    client.once('end', () => {
      events.emit('close')
      if (isClosed) return
      failures++
      timer = setTimeout(() => {
        redis = connect()
      }, retryDelay(failures))
    })
    return client
  }

  return {
    get status() {
      return redis.status
    },
    on: (event: string, listener: (...values: string[]) => void) => events.on(event, listener),
    subscribe: (...channels) => redis.subscribe(...channels),
    unsubscribe: (...channels) => redis.unsubscribe(...channels),
    disconnect() {
      isClosed = true
      clearTimeout(timer)
      redis.disconnect()
    },
  }
}

/** Returns all nodes that serve hash slots, and their replicas. */
async function findNodes(redis: Redis): Promise<readonly RedisNode[]> {
  const ranges = await redis.cluster('SLOTS')
  // A node that does not know its own address lists itself without one.
  return ranges.flatMap(([, , ...owners]) => owners.flatMap(([host, port]) => (host ? [{ host, port }] : [])))
}
