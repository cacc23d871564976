// The connection to a Redis Cluster for messages. Every node receives every message, so the connection is to one node, and to another
// one as soon as that node is lost. ioredis has a subscriber for clusters as well, but it does not say when it has changed the node,
// and while no node answers it connects again and again without a pause.
import { EventEmitter } from 'node:events'
import type { RedisAddress, RedisNode } from '@bullpen/contract/internal'
import { Redis } from 'ioredis'
import { nodeOptions, retryDelay } from './redis-client.ts'

/** What a connection for messages can do. An ioredis client of a single server has the same methods. */
export interface MessageConnection {
  /** `ready` if it is connected. */
  readonly status: string
  /** `ready`: it is connected and must be subscribed. `close`: it is not connected any more. */
  on(event: 'ready' | 'close', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  /** Closes it for good. */
  disconnect(): void
}

type ClusterAddress = Extract<RedisAddress, { kind: 'cluster' }>

export function openClusterSubscriber(address: ClusterAddress, random: () => number = Math.random): MessageConnection {
  const events = new EventEmitter()
  /** The nodes of the URL, and those that the cluster had when it was last asked. */
  let nodes: readonly RedisNode[] = address.nodes
  let failures = 0
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let redis = connect()

  function connect(): Redis {
    const node = nodes[Math.floor(random() * nodes.length)]
    // Redis subscribes again only when `events` has said `ready`, and this client never connects twice.
    const client = new Redis({ ...nodeOptions(address), ...node, retryStrategy: null, autoResubscribe: false })
    // The clients for commands report an outage.
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

/** Returns all nodes that hold slots, and their replicas. */
async function findNodes(redis: Redis): Promise<readonly RedisNode[]> {
  const ranges = await redis.cluster('SLOTS')
  // A node that does not know its own address lists itself without one.
  return ranges.flatMap(([, , ...owners]) => owners.flatMap(([host, port]) => (host ? [{ host, port }] : [])))
}
