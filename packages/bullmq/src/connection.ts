// Opens Redis connections with the settings that suit each use, and limits how long a caller waits for a response.
import { BullpenError, type Log } from '@bullpen/contract'
import { REDIS_URLS, type RedisAddress, readRedisUrl, withoutEffect } from '@bullpen/contract/internal'
import { faultOfTlsFiles } from '@bullpen/contract/node'
import type { Redis } from 'ioredis'
import { type MessageConnection, openClusterSubscriber } from './redis/cluster-subscriber.ts'
import { COMMAND_TIMED_OUT, limitCommands } from './redis/command-timeouts.ts'
import type { ConnectionWatch } from './redis/connection-watch.ts'
import { joinWrites } from './redis/joined-writes.ts'
import { hadNoEffect } from './redis/not-sent.ts'
import { ERROR_REPLIES, errorCode } from './redis/outages/error-replies.ts'
import { addressOf, isOutageLogged, knownTrouble, outageReporter } from './redis/outages/outage-reporter.ts'
import { noticeRefusals } from './redis/outages/refusals.ts'
import { troubleOf, troubleText } from './redis/outages/trouble.ts'
import {
  type ClientOptions,
  FOLLOWING_CLUSTER,
  isCluster,
  openClient,
  openServer,
  RECONNECTING,
} from './redis/redis-client.ts'
import { closeWhenSilent, OF_PRODUCER, OF_SUBSCRIBER } from './redis/silence.ts'
import type { Commander } from './scripts/script.ts'

/**
 * How long a producer waits for the response to a command, in ms. If Redis stops responding, an API therefore responds to an HTTP
 * request within a second. A call that takes several round trips has this time for each of them, because Redis may be far away.
 */
export const COMMAND_TIMEOUT_MS = 800

/** How often a cluster client resends a command while the node with the command's hash slot is unreachable, in ms. */
const FAILOVER_RETRY_MS = 100

/**
 * Parses a Redis URL.
 *
 * @throws BullpenError `invalid_configuration`
 */
export function addressIn(redisUrl: string): RedisAddress {
  const address = readRedisUrl(redisUrl)
  if (address.kind !== 'invalid') return address
  // The URL may contain a password.
  throw new BullpenError('invalid_configuration', `invalid Redis URL: ${address.fault}; expected ${REDIS_URLS}`)
}

/**
 * Parses the URL with which a program starts, and checks that the files for TLS can be used together. Reconnections do not check this,
 * because a certificate may just be being renewed: they fail, and are tried again.
 *
 * @throws BullpenError `invalid_configuration`
 */
export function usableAddress(redisUrl: string): RedisAddress {
  const address = addressIn(redisUrl)
  const fault = address.tls && faultOfTlsFiles(address.tls)
  if (fault !== undefined) throw new BullpenError('invalid_configuration', fault)
  return address
}

/**
 * Opens a connection for producers. While Redis is unreachable, the connection rejects commands immediately and keeps trying to
 * reconnect. If one cluster node is unreachable, commands for that node's queues are rejected after {@link COMMAND_TIMEOUT_MS}.
 *
 * @throws BullpenError `invalid_configuration`, like all functions in this module that open a connection.
 */
export function producerConnection(
  url: string,
  log: Log,
  watch?: ConnectionWatch,
  timeoutMs = COMMAND_TIMEOUT_MS,
): Commander {
  const redis = openProducer(usableAddress(url), timeoutMs)
  if (!isCluster(redis)) joinWrites(redis, 'turn')
  watch?.follow(redis)
  return reported(url, log, redis)
}

function openProducer(address: RedisAddress, timeoutMs = COMMAND_TIMEOUT_MS): Commander {
  const redis = openClient(address, PRODUCER)
  limitCommands(redis, timeoutMs)
  if (isCluster(redis)) redis.on('+node', (node: Redis) => limitCommands(node, timeoutMs))
  return redis
}

/**
 * Opens a producer's connection for commands that wait for replicas. It rejects the commands that have no reply when it is lost, and never
 * sends them again: on another connection, a WAIT would not wait for what this one has written. It does not limit how long a command takes.
 */
export function replicationConnection(url: string, log: Log): Commander {
  const server = { ...PRODUCER.server, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }
  return reported(url, log, openClient(usableAddress(url), { ...PRODUCER, server }))
}

const PRODUCER: ClientOptions = {
  server: {
    ...RECONNECTING,
    // With an offline queue, a command that is issued while disconnected would wait forever.
    enableOfflineQueue: false,
  },
  cluster: {
    ...FOLLOWING_CLUSTER,
    enableOfflineQueue: false,
    retryDelayOnFailover: FAILOVER_RETRY_MS,
    // A command is not sent again once its caller has received an error.
    maxRedirections: COMMAND_TIMEOUT_MS / FAILOVER_RETRY_MS,
  },
  silence: OF_PRODUCER,
}

/** Opens a connection for workers. Its commands wait until Redis responds, however long that takes. */
export function workerConnection(url: string, log: Log, watch?: ConnectionWatch): Commander {
  const redis = openClient(usableAddress(url), WAITING)
  if (!isCluster(redis)) joinWrites(redis, 'callback')
  watch?.follow(redis)
  return reported(url, log, redis)
}

/** Opens a connection for a reader that blocks in a command. Such a connection is never shared. */
export function blockingConnection(url: string, log: Log): Commander {
  const address = addressIn(url)
  const redis = openClient(address, WAITING)
  // Such a connection may be closed while it is being opened. A cluster client then never emits `end`, which the reporter would
  // wait for.
  return address.kind === 'cluster' ? unreported(redis) : reported(url, log, redis)
}

const WAITING: ClientOptions = {
  server: { ...RECONNECTING, maxRetriesPerRequest: null },
  cluster: {
    ...FOLLOWING_CLUSTER,
    retryDelayOnFailover: FAILOVER_RETRY_MS,
    // A failover may take longer than any number of retries.
    maxRedirections: Number.POSITIVE_INFINITY,
  },
  node: { maxRetriesPerRequest: null },
}

/**
 * Opens a connection for a subscriber, which must subscribe again whenever the connection becomes `ready`. ioredis is configured
 * not to, because it leaves an unhandled promise rejection if the connection closes before the reply arrives.
 */
export function subscriberConnection(url: string, log: Log): MessageConnection {
  const address = addressIn(url)
  if (address.kind === 'cluster') return openClusterSubscriber(address)
  const redis = closeWhenSilent(openServer(address, SUBSCRIBER), OF_SUBSCRIBER)
  outageReporter(url, log).follow(redis)
  return redis
}

const SUBSCRIBER = { ...WAITING.server, autoResubscribe: false }

/** Opens a connection for measuring clock skew. It behaves like a producer's, but its failures are not reported. */
export function skewConnection(url: string): Commander {
  return unreported(openProducer(usableAddress(url)))
}

function unreported(redis: Commander): Commander {
  redis.on('error', () => {})
  return redis
}

function reported(url: string, log: Log, redis: Commander): Commander {
  noticeRefusals(redis)
  outageReporter(url, log).follow(redis)
  return redis
}

/**
 * Awaits what one or several commands on a producer's connection return, whose time the connection limits.
 *
 * @throws BullpenError `redis_full` if Redis has no memory left for a command that adds data, and `redis_unavailable` on any
 * other failure or if a command receives no reply within {@link COMMAND_TIMEOUT_MS}.
 */
export type WithRedisErrors = <T>(reply: Promise<T>) => Promise<T>

export function redisErrors(redisUrl: string): WithRedisErrors {
  return (reply) =>
    reply.catch((cause: unknown) => {
      throw unavailable(redisUrl, cause)
    })
}

/**
 * Returns {@link redisErrors} for a single command, whose error says if the command has had no effect. A cluster's client may send a
 * command several times, so the last try does not show whether an earlier one had an effect.
 */
export function commandErrors(redisUrl: string): WithRedisErrors {
  if (addressIn(redisUrl).kind === 'cluster') return redisErrors(redisUrl)
  return (reply) =>
    reply.catch((cause: unknown) => {
      const error = unavailable(redisUrl, cause)
      throw hadNoEffect(error) ? withoutEffect(error) : error
    })
}

/** The error has a cause, which callers do not log, if the outage reporter has logged the outage. */
function noResponse(redisUrl: string, cause: Error): BullpenError {
  const text = `Redis at ${addressOf(redisUrl)} did not respond within ${COMMAND_TIMEOUT_MS} ms`
  return new BullpenError('redis_unavailable', text, isOutageLogged(redisUrl) ? { cause } : undefined)
}

function unavailable(redisUrl: string, cause: unknown): BullpenError {
  if (cause instanceof BullpenError) return cause
  if (cause instanceof Error && cause.message === COMMAND_TIMED_OUT) return noResponse(redisUrl, cause)
  const address = addressOf(redisUrl)
  const trouble = troubleOf(cause)
  if (trouble !== undefined) {
    // A client that is not connected rejects commands without saying why.
    const known = trouble === 'unreachable' ? (knownTrouble(redisUrl) ?? trouble) : trouble
    return new BullpenError('redis_unavailable', troubleText(address, known), { cause })
  }
  const why = cause instanceof Error ? cause.message : String(cause)
  // Redis refuses a script of the kind `adds` before the script has written anything.
  if (why.startsWith('OOM ')) {
    return new BullpenError('redis_full', `Redis at ${address} is full: its memory has reached maxmemory`, { cause })
  }
  const code = errorCode(cause)
  if (code === 'MOVED') {
    const { problem, advice } = ERROR_REPLIES.MOVED
    return new BullpenError('redis_unavailable', `Redis at ${address} ${problem}; ${advice}`, { cause })
  }
  const advice = code === undefined ? '' : `; ${ERROR_REPLIES[code].advice}`
  return new BullpenError('redis_unavailable', `Redis at ${address} rejected a command: ${why}${advice}`, { cause })
}
