// Opens Redis connections with the settings that suit each use, and limits how long a caller waits for an answer.
import { BullpenError, type Log } from '@bullpen/contract'
import { Redis, type RedisOptions } from 'ioredis'
import { addressOf, isConnectionError, outageReporter } from './redis/outage-reporter.ts'
import { RECONNECTING } from './redis/renewal-connection.ts'

/** How long a producer waits for the answer to a command, in ms. This lets an HTTP caller be answered within a second. */
export const COMMAND_TIMEOUT_MS = 800

/** Opens a connection for producers. It rejects commands immediately while Redis is unreachable, and reconnects by itself. */
export function producerConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, PRODUCER))
}

const PRODUCER = {
  ...RECONNECTING,
  // With an offline queue, a command that is issued while disconnected would wait forever.
  enableOfflineQueue: false,
  commandTimeout: COMMAND_TIMEOUT_MS,
} satisfies Omit<RedisOptions, 'replyMapping'>

/** Opens a connection for workers. Its commands wait for Redis for as long as necessary. */
export function workerConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, WAITING))
}

/** Opens a connection for a reader that blocks in a command. Such a connection is never shared. */
export function blockingConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, WAITING))
}

/**
 * Opens a connection for a subscriber, which subscribes again itself whenever the connection is `ready`. If ioredis did it, a
 * connection that is closed before the answer arrives would leave a rejected promise that nobody can handle.
 */
export function subscriberConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, { ...WAITING, autoResubscribe: false }))
}

const WAITING = { ...RECONNECTING, maxRetriesPerRequest: null } satisfies Omit<RedisOptions, 'replyMapping'>

/** Opens a connection for measuring clock skew. It behaves like a producer's, but its failures are not reported. */
export function skewConnection(url: string): Redis {
  const redis = new Redis(url, PRODUCER)
  redis.on('error', () => {})
  return redis
}

function reported(url: string, log: Log, redis: Redis): Redis {
  outageReporter(url, log).follow(redis)
  return redis
}

/**
 * Awaits an answer from Redis.
 *
 * @throws BullpenError `redis_unavailable` on any failure, or after {@link COMMAND_TIMEOUT_MS} without an answer.
 */
export type WithCommandTimeout = <T>(answer: Promise<T>) => Promise<T>

export function commandTimeout(redisUrl: string): WithCommandTimeout {
  const address = addressOf(redisUrl)
  return async (answer) => {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(noAnswer(address)), COMMAND_TIMEOUT_MS)
    try {
      return await Promise.race([answer, late])
    } catch (cause) {
      throw unavailable(address, cause)
    } finally {
      clearTimeout(timer)
    }
  }
}

function noAnswer(address: string): BullpenError {
  return new BullpenError('redis_unavailable', `Redis at ${address} did not answer within ${COMMAND_TIMEOUT_MS} ms`)
}

function unavailable(address: string, cause: unknown): BullpenError {
  if (cause instanceof BullpenError) return cause
  if (cause instanceof Error && cause.message === 'Command timed out') return noAnswer(address)
  if (isConnectionError(cause)) {
    return new BullpenError('redis_unavailable', `Redis is not reachable at ${address}`, { cause })
  }
  const why = cause instanceof Error ? cause.message : String(cause)
  return new BullpenError('redis_unavailable', `Redis at ${address} rejected a command: ${why}`, { cause })
}
