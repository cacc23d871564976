// Opens a client of one Redis server or of a Redis Cluster. The module loads as little code as possible, because the thread that
// renews locks uses it.
import type { RedisAddress } from '@bullpen/contract/internal'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import type { Commander } from '../scripts/script.ts'

export interface ClientOptions {
  readonly server: Omit<RedisOptions, 'replyMapping'>
  readonly cluster: Omit<ClusterOptions, 'redisOptions'>
  /** Of the connections to the nodes of a cluster. */
  readonly node?: Pick<RedisOptions, 'commandTimeout' | 'maxRetriesPerRequest'>
}

/** The longest delay between two attempts to connect, in ms. Once Redis is back, it is in use again within this time. */
const MAX_RECONNECT_DELAY_MS = 1_000
/** How long a node of a cluster may take to accept a connection, in ms, before another one is asked which nodes there are. */
const NODE_CONNECT_TIMEOUT_MS = 2_000

/** The delay before a further attempt to connect, in ms, after so many that have failed. */
export const retryDelay = (times: number): number => Math.min(50 * 2 ** Math.min(times, 5), MAX_RECONNECT_DELAY_MS)

/** Options of every connection to a single server. */
export const RECONNECTING = {
  retryStrategy: retryDelay,
  // After a failover, the old master is read-only. Reconnect and send the command again, since every write would fail otherwise.
  reconnectOnError: (error: Error): 2 | false => (error.message.includes('READONLY') ? 2 : false),
  // Automatic pipelining of the commands issued in one tick would halve BullMQ's throughput.
  enableAutoPipelining: false,
} satisfies RedisOptions

/**
 * Options of every client of a cluster. ioredis does not reconnect to a node that is lost. It asks the others which node has its
 * slots now, and sends the commands there.
 */
export const FOLLOWING_CLUSTER = {
  clusterRetryStrategy: retryDelay,
  enableAutoPipelining: false,
  // The check asks any node for the state of the cluster, and begins again if that node is down. Without it, a command that the
  // cluster can't execute yet is sent again.
  enableReadyCheck: false,
  // A certificate names hosts, so names are not replaced by addresses.
  dnsLookup: (host, callback) => callback(null, host),
} satisfies ClusterOptions

export function openClient(address: RedisAddress, { server, cluster, node }: ClientOptions): Commander {
  if (address.kind === 'server') return new Redis(address.url, server)
  return new Cluster([...address.nodes], { ...cluster, redisOptions: { ...nodeOptions(address), ...node } })
}

/** The options of a connection to any node of a cluster. */
export function nodeOptions({ tls, username, password }: Extract<RedisAddress, { kind: 'cluster' }>) {
  return {
    connectTimeout: NODE_CONNECT_TIMEOUT_MS,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
  }
}

/** Whether a client is one of a cluster. */
export function isCluster(redis: Commander): redis is Cluster {
  return redis.isCluster
}
