// Opens Redis connections with the settings that suit each use, and bounds how long a caller waits for an answer.
import { BullpenError, type Log } from '@bullpen/contract'
import { Redis, type RedisOptions } from 'ioredis'
import { addressOf, isConnectionError, outageReporter } from './redis/outage-reporter.ts'
import { RECONNECTING } from './redis/renewal-connection.ts'

/** A producer's command gives up after this many ms, so that an HTTP caller is answered within a second. */
export const COMMAND_TIMEOUT_MS = 800

/** For producers: rejects at once while Redis is away, and reconnects by itself. */
export function producerConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, PRODUCER))
}

const PRODUCER = {
  ...RECONNECTING,
  // With a queue, a command that is issued while disconnected would wait forever.
  enableOfflineQueue: false,
  commandTimeout: COMMAND_TIMEOUT_MS,
} satisfies Omit<RedisOptions, 'replyMapping'>

/** For workers: waits for Redis as long as it takes. */
export function workerConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, WAITING))
}

/** For a reader that blocks in a command, or is subscribed; never shared. */
export function blockingConnection(url: string, log: Log): Redis {
  return reported(url, log, new Redis(url, WAITING))
}

const WAITING = { ...RECONNECTING, maxRetriesPerRequest: null } satisfies Omit<RedisOptions, 'replyMapping'>

/** For the measurement of clock skew: like a producer's, but its failures are not reported. */
export function skewConnection(url: string): Redis {
  const redis = new Redis(url, PRODUCER)
  redis.on('error', () => {})
  return redis
}

function reported(url: string, log: Log, redis: Redis): Redis {
  outageReporter(url, log).follow(redis)
  return redis
}

/** Awaits an answer from Redis. @throws BullpenError `redis_unavailable` on any failure, and after {@link COMMAND_TIMEOUT_MS}. */
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
  return new BullpenError('redis_unavailable', `Redis at ${address} refused a command: ${why}`, { cause })
}
