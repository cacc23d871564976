// Opens a connection for a single examination. Unlike the connections of programs, it gives up if Redis does not respond.
import { BullpenError } from '@bullpen/contract'
import { type Redis, ReplyError } from 'ioredis'
import { usableAddress } from '../connection.ts'
import { addressOf } from '../redis/outages/outage-reporter.ts'
import { type TlsTrouble, tlsMismatch } from '../redis/outages/tls-trouble.ts'
import { troubleOf, troubleText } from '../redis/outages/trouble.ts'
import { FOLLOWING_CLUSTER, isCluster, openClient } from '../redis/redis-client.ts'
import { isSelectError } from '../redis/selected-database.ts'
import type { Commander } from '../scripts/script.ts'

/** How long the server may take to accept the connection, in ms. */
const CONNECT_TIMEOUT_MS = 5_000

/**
 * Calls `use` with a connection, and closes it afterwards.
 *
 * @throws BullpenError `invalid_configuration` if this is not a URL of Redis or its files for TLS cannot be used, `redis_unavailable` if
 * Redis does not respond or the connection cannot be used, and `unauthorized` if Redis refuses the user or a command.
 */
export async function withConnection<T>(redisUrl: string, use: (redis: Commander) => Promise<T>): Promise<T> {
  const address = usableAddress(redisUrl)
  const redis = openClient(address, {
    server: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      lazyConnect: true,
      retryStrategy: () => null,
      enableReadyCheck: false,
    },
    cluster: { ...FOLLOWING_CLUSTER, lazyConnect: true, clusterRetryStrategy: () => null },
    node: { maxRetriesPerRequest: 1 },
  })
  let lastError: unknown
  redis.on('error', (error: unknown) => {
    lastError = error
  })
  // A cluster's client does not show the connections of its nodes.
  let socket: Redis['stream'] | undefined
  if (!isCluster(redis)) {
    redis.on('connect', () => {
      socket = redis.stream
    })
  }
  try {
    await redis.connect()
    // There is no ready check, which would have refused the connection.
    if (isSelectError(lastError)) throw lastError
    return await use(redis)
  } catch (error) {
    const cause = error instanceof ReplyError ? error : (lastError ?? error)
    const mismatch = tlsMismatch(address.tls !== undefined, socket?.bytesRead === 0, cause)
    throw asBullpenError(redisUrl, cause, mismatch)
  } finally {
    redis.disconnect()
  }
}

/** `mismatch` is what the attempt to connect says about TLS. */
function asBullpenError(redisUrl: string, cause: unknown, mismatch?: TlsTrouble): unknown {
  if (cause instanceof BullpenError) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  if (cause instanceof ReplyError) {
    return new BullpenError('unauthorized', `Redis refused the user or a command: ${why}`, { cause })
  }
  const known = troubleOf(cause)
  const trouble = known === 'unreachable' ? mismatch : known
  const text = trouble === undefined ? `Redis does not respond: ${why}` : troubleText(addressOf(redisUrl), trouble)
  return new BullpenError('redis_unavailable', text, { cause })
}
