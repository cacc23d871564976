// Opens the connection over which locks are renewed. This is a separate module because the renewal thread loads as little code as
// possible.
import type { RedisAddress } from '@bullpen/contract/internal'
import type { Redis } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { limitCommands } from './command-timeouts.ts'
import { FOLLOWING_CLUSTER, isCluster, openClient, RECONNECTING } from './redis-client.ts'

/** How long a server that does not respond may take to close a connection, in ms, before the client drops the connection. */
const DISCONNECT_TIMEOUT_MS = 100

/**
 * How long a server may owe a reply, in ms, before its connection is replaced. Locks are renewed every second and last for 5 s, so they
 * outlast a connection that the network has lost. An idle connection is pinged, so that its loss is usually noticed before a lock depends
 * on it.
 */
const SILENT_AFTER_MS = 2_000
/** How long the connection may be idle without a ping, in ms. No lock depends on it meanwhile. */
const PING_AFTER_MS = 2_250
/** How long a renewal is worth waiting for, in ms, with the time for a new connection. */
const REPLY_WITHIN_MS = 4_000

/**
 * Opens a connection that rejects a command immediately if it can't be sent, and after 4 s if it gets no reply, because a late renewal is
 * useless.
 */
export function renewalConnection(address: RedisAddress): Commander {
  const redis = openClient(address, {
    server: {
      ...RECONNECTING,
      enableOfflineQueue: false,
      connectTimeout: SILENT_AFTER_MS,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    },
    cluster: {
      ...FOLLOWING_CLUSTER,
      enableOfflineQueue: false,
      // A command follows its hash slot to another node, but does not wait for a failover.
      maxRedirections: 3,
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
    },
    node: { disconnectTimeout: DISCONNECT_TIMEOUT_MS },
    silence: { afterMs: SILENT_AFTER_MS, pingAfterMs: PING_AFTER_MS },
  })
  if (isCluster(redis)) redis.on('+node', (node: Redis) => limitCommands(node, REPLY_WITHIN_MS))
  else limitCommands(redis, REPLY_WITHIN_MS)
  // The consumer's own connection reports the outage.
  redis.on('error', () => {})
  return redis
}
