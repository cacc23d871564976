// The connection that locks are renewed over. It runs in a thread that loads as little as possible, hence its own module.
import { Redis, type RedisOptions } from 'ioredis'

/** The longest wait between two attempts to connect, in ms: Redis is in use again this soon after it is back. */
const MAX_RECONNECT_DELAY_MS = 1_000

/** Options of every connection. */
export const RECONNECTING = {
  retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 5), MAX_RECONNECT_DELAY_MS),
  // After a failover the old master is read-only. Reconnect and send the command again; otherwise errors flood in.
  reconnectOnError: (error: Error): 2 | false => (error.message.includes('READONLY') ? 2 : false),
  // Pipelining the commands that are issued in one tick costs half of BullMQ's throughput.
  enableAutoPipelining: false,
} satisfies RedisOptions

/** Rejects at once a command that it can't send, and never resends one: a late renewal is useless. */
export function renewalConnection(url: string): Redis {
  const redis = new Redis(url, {
    ...RECONNECTING,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
  })
  // The consumer's own connection reports the outage.
  redis.on('error', () => {})
  return redis
}
