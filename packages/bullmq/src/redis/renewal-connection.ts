// Opens the connection over which locks are renewed. This is a separate module because the renewal thread loads as little code as
// possible.
import type { RedisAddress } from '@bullpen/contract/internal'
import type { Commander } from '../scripts/script.ts'
import { FOLLOWING_CLUSTER, openClient, RECONNECTING } from './redis-client.ts'

/** How long a server that does not respond may take to close a connection, in ms, before the client drops the connection. */
const DISCONNECT_TIMEOUT_MS = 100

/**
 * Opens a connection that rejects a command immediately if it can't be sent, and never resends a command, because a late renewal
 * is useless.
 */
export function renewalConnection(address: RedisAddress): Commander {
  const redis = openClient(address, {
    server: {
      ...RECONNECTING,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      connectTimeout: 2_000,
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
  })
  // The consumer's own connection reports the outage.
  redis.on('error', () => {})
  return redis
}
