// The connection that locks are renewed over, in a thread that loads nothing that it does not need.
import { Redis, type RedisOptions } from 'ioredis'

/** Longest wait between two tries to connect, in ms: a Redis that is back is in use again within this time. */
const RECONNECT_AT_MOST_MS = 1_000

/** Of every connection. */
export const RECONNECTING = {
  retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 5), RECONNECT_AT_MOST_MS),
  // After a failover the old master is read-only: reconnect and send the command again, or errors flood in.
  reconnectOnError: (error: Error): 2 | false => (error.message.includes('READONLY') ? 2 : false),
  // Pipelining what happens to be issued in one tick costs half of BullMQ's throughput.
  enableAutoPipelining: false,
} satisfies RedisOptions

/** Refuses at once what it can't send, and sends nothing again: a renewal that comes late is none. */
export function renewalConnection(url: string): Redis {
  const redis = new Redis(url, {
    ...RECONNECTING,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
  })
  // The feed's own connection says it in the log.
  redis.on('error', () => {})
  return redis
}
