// Redis connections with the settings that are right for each use; the reasons are measurements.
import { BullpenError, type Log } from '@bullpen/contract'
import { Redis, type RedisOptions } from 'ioredis'
import { RECONNECTING } from './locks/renewal-connection.ts'
import { throttledLog } from './throttled-log.ts'

/** A producer's command gives up after this many ms, so that an HTTP caller has its answer within a second. */
export const COMMAND_TIMEOUT_MS = 800

/** For producers: fails fast while Redis is away, and comes back by itself. */
export function producerConnection(url: string, log: Log): Redis {
  return connect(url, log, {
    ...RECONNECTING,
    // A command issued while disconnected would wait for ever in ioredis' own queue.
    enableOfflineQueue: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
  })
}

/** For workers: waits for Redis as long as it takes, since the work is there when it is back. */
export function workerConnection(url: string, log: Log): Redis {
  return connect(url, log, { ...RECONNECTING, maxRetriesPerRequest: null })
}

/** For a reader that blocks in a command of its own; never shared. */
export function blockingConnection(url: string, log: Log): Redis {
  return connect(url, log, { ...RECONNECTING, maxRetriesPerRequest: null })
}

/** For measurements: as a producer's, and its failures are for others to tell. */
export function skewConnection(url: string): Redis {
  return producerConnection(url, { debug() {}, info() {}, warn() {}, error() {} })
}

function connect(url: string, log: Log, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const redis = new Redis(url, options)
  const failed = throttledLog((error: Error, suppressed) =>
    log.warn({ err: error, suppressed }, 'Redis connection failed'),
  )
  redis.on('error', failed)
  return redis
}

/** Every failure of a producer's command is the same to its caller: Redis can't be used now. */
export function unavailable(cause: unknown): BullpenError {
  if (cause instanceof BullpenError) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new BullpenError('redis_unavailable', `Redis did not answer: ${why}`, { cause })
}

/** The answer, or `redis_unavailable`: no caller waits longer than a producer's command may take. */
export async function withCommandTimeout<T>(promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${COMMAND_TIMEOUT_MS} ms`)), COMMAND_TIMEOUT_MS)
  try {
    return await Promise.race([promise, late])
  } catch (cause) {
    throw unavailable(cause)
  } finally {
    clearTimeout(timer)
  }
}
