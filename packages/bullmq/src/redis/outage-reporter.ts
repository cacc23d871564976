// Reports a Redis outage once per process instead of once per connection: logs one line when the outage begins, one every 30 s
// while it lasts, and one when it is over. See cluster-nodes.ts for outages of single cluster nodes.
import type { Log } from '@bullpen/contract'
import type { Commander } from '../scripts/script.ts'
import { createNodeReporter } from './cluster-nodes.ts'
import { isCluster } from './redis-client.ts'

const REPEAT_EVERY_MS = 30_000

/** Returns the address of Redis without the user name and password. */
export function addressOf(redisUrl: string): string {
  const [, protocol, hosts] = /^(rediss?(?:\+cluster)?:\/\/)(?:[^/?#]*@)?([^/?#@]+)/.exec(redisUrl) ?? []
  return hosts === undefined ? 'the configured address' : `${protocol}${hosts}`
}

export interface OutageReporter {
  /** Watches a connection until it is closed on purpose. */
  follow(redis: Commander): void
}

const reporters = new Map<string, OutageReporter>()

/**
 * Returns this process's reporter for the given Redis address. The reporter exists as long as it watches a connection, and logs
 * to the logger supplied by the first caller.
 */
export function outageReporter(redisUrl: string, log: Log, repeatMs = REPEAT_EVERY_MS): OutageReporter {
  const known = reporters.get(redisUrl)
  if (known !== undefined) return known
  const created = createReporter(addressOf(redisUrl), log, repeatMs, () => reporters.delete(redisUrl))
  reporters.set(redisUrl, created)
  return created
}

function createReporter(address: string, log: Log, repeatMs: number, onUnused: () => void): OutageReporter {
  const followed = new Set<Commander>()
  const down = new Set<Commander>()
  const nodes = createNodeReporter(address, log, isConnectionError)
  let outage: { readonly since: number; failures: number; nextLineAt: number } | undefined

  const awayMs = (): number => Math.round(performance.now() - (outage?.since ?? performance.now()))

  const failed = (redis: Commander, wasConnected: boolean): void => {
    down.add(redis)
    const now = performance.now()
    if (outage === undefined) {
      outage = { since: now, failures: 0, nextLineAt: now + repeatMs }
      log.warn({ redis: address }, wasConnected ? 'redis connection lost' : 'redis not reachable')
      return
    }
    outage.failures++
    if (now < outage.nextLineAt) return
    outage.nextLineAt = now + repeatMs
    log.warn({ redis: address, awayMs: awayMs(), failures: outage.failures }, 'redis still not reachable')
  }

  const restored = (redis: Commander): void => {
    down.delete(redis)
    endOutage()
  }

  const endOutage = (): void => {
    if (outage === undefined || down.size > 0) return
    log.info({ redis: address, awayMs: awayMs() }, 'redis connection restored')
    outage = undefined
  }

  const closed = (redis: Commander): void => {
    followed.delete(redis)
    down.delete(redis)
    if (followed.size === 0) onUnused()
    // The closed connection may have been the last one that was down. If no connection is ready yet, the outage ends when the
    // first one is.
    else if ([...followed].some(({ status }) => status === 'ready')) endOutage()
  }

  return {
    follow(redis) {
      followed.add(redis)
      if (isCluster(redis)) nodes.follow(redis)
      let wasConnected = false
      redis.on('ready', () => {
        wasConnected = true
        restored(redis)
      })
      // ioredis emits 'error' if a connection can't be established, and only 'close' if the server ends it.
      redis.on('error', (error: Error) => {
        if (isConnectionError(error)) failed(redis, wasConnected)
        else log.warn({ redis: address, err: error }, 'redis reported an error')
      })
      redis.on('reconnecting', () => {
        if (!down.has(redis)) failed(redis, wasConnected)
      })
      redis.on('end', () => closed(redis))
    },
  }
}

const CONNECTION_ERROR_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])
const CONNECTION_ERROR_MESSAGES =
  /Connection is closed|Socket timeout|Stream isn't writeable|connect ETIMEDOUT|Command timed out|Failed to refresh slots cache|None of startup nodes|Cluster isn't ready|Too many Cluster redirections|^CLUSTERDOWN /

/** Returns whether an error only means that Redis is unreachable, which the outage reporter already logs. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && CONNECTION_ERROR_CODES.has(String(error.code))) return true
  return CONNECTION_ERROR_MESSAGES.test(error.message)
}
