// Opens a client for a single Redis server or for a Redis Cluster. The module loads as little code as possible, because the
// lock-renewal thread uses it.
import type { RedisAddress, RedisClusterAddress, RedisServerAddress } from '@bullpen/contract/internal'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { shareCommands } from '../scripts/shared-commands.ts'
import { accessOptions } from './access-options.ts'
import { followPrimary } from './outages/primary.ts'
import { requireDatabase } from './selected-database.ts'
import { closeWhenSilent, type SilenceOptions } from './silence.ts'

export interface ClientOptions {
  readonly server: Omit<RedisOptions, 'replyMapping'>
  readonly cluster: Omit<ClusterOptions, 'redisOptions'>
  /** Options for the connections to a cluster's nodes. */
  readonly node?: Pick<RedisOptions, 'disconnectTimeout' | 'maxRetriesPerRequest'>
  readonly silence?: SilenceOptions
}

/** The longest delay between two attempts to connect, in ms. Once Redis is back, the client is connected again within this time. */
const MAX_RECONNECT_DELAY_MS = 1_000
/** How long a server may take to accept a connection, in ms. */
const CONNECT_TIMEOUT_MS = 5_000
/** How long a cluster node may take to accept a connection, in ms, before the client asks another node for the list of nodes. */
const NODE_CONNECT_TIMEOUT_MS = 2_000

/** Returns the delay before the next attempt to connect, in ms. `times` is the number of attempts that have failed. */
export const retryDelay = (times: number): number => Math.min(50 * 2 ** Math.min(times, 5), MAX_RECONNECT_DELAY_MS)

/** The options for every connection to a single server. */
export const RECONNECTING = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: retryDelay,
  // Automatic pipelining of the commands issued in one tick would halve BullMQ's throughput.
  enableAutoPipelining: false,
  // The check holds commands back while Redis loads its data after a restart. Without it, Redis would reject them with LOADING. If
  // Redis does not permit INFO, ioredis skips the check and prints a line of plain text for each connection, which no option turns
  // off while the check is on.
  enableReadyCheck: true,
} satisfies RedisOptions

/**
 * The options for every cluster client. ioredis does not reconnect to a lost node. It asks the other nodes which of them has the
 * lost node's slots now, and sends the commands there.
 */
export const FOLLOWING_CLUSTER = {
  clusterRetryStrategy: retryDelay,
  enableAutoPipelining: false,
  // The ready check asks any node for the cluster's state, and starts again if that node is down. The check is not needed,
  // because a command that the cluster can't execute yet is sent again.
  enableReadyCheck: false,
  // TLS certificates contain host names, so the names must not be resolved to addresses.
  dnsLookup: (host, callback) => callback(null, host),
} satisfies ClusterOptions

export function openClient(address: RedisAddress, { server, cluster, node, silence }: ClientOptions): Commander {
  const create = (): Commander => {
    if (address.kind === 'server') return followPrimary(openServer(address, server))
    return new Cluster([...address.nodes], { ...cluster, redisOptions: { ...nodeOptions(address), ...node } })
  }
  return closeWhenSilent(shareCommands(create()), silence)
}

/** Opens a client for a single server. */
export function openServer(address: RedisServerAddress, options: ClientOptions['server']): Redis {
  const { host, port, family, database: db } = address
  return requireDatabase(new Redis({ ...accessOptions(address), host, port, family, db, ...options }))
}

/** Returns the options for a connection to any node of a cluster. */
export function nodeOptions(address: RedisClusterAddress) {
  return { connectTimeout: NODE_CONNECT_TIMEOUT_MS, ...accessOptions(address) }
}

/** Returns how ioredis names a cluster node. */
export function keyOfNode({ host, port }: NodeOptions): string {
  return `${host}:${port}`
}

interface NodeOptions {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** Returns whether this is a cluster client. */
export function isCluster(redis: Commander): redis is Cluster {
  return redis.isCluster
}
