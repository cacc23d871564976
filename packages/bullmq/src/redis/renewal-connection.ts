// The connection over which locks are renewed. It has a module of its own because the thread that uses it loads as little code as
// possible.
import { Redis, type RedisOptions } from 'ioredis'

/** The longest delay between two attempts to connect, in ms. Once Redis is back, it is in use again within this time. */
const MAX_RECONNECT_DELAY_MS = 1_000

/** Options of every connection. */
export const RECONNECTING = {
  retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times, 5), MAX_RECONNECT_DELAY_MS),
  // After a failover, the old master is read-only. Reconnect and send the command again, since every write would fail otherwise.
  reconnectOnError: (error: Error): 2 | false => (error.message.includes('READONLY') ? 2 : false),
  // Automatic pipelining of the commands issued in one tick would halve BullMQ's throughput.
  enableAutoPipelining: false,
} satisfies RedisOptions

/** Rejects a command immediately if it can't be sent, and never resends one, because a late renewal is useless. */
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
