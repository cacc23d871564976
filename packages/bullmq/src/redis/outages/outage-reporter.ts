// Reports a Redis outage once per process instead of once per connection: logs one line when the outage begins, one whenever its cause
// changes, one every 30 s while it lasts, and one when it is over. See cluster-nodes.ts for outages of single cluster nodes.
import type { Log } from '@bullpen/contract'
import { readRedisUrl } from '@bullpen/contract/internal'
import type { Commander } from '../../scripts/script.ts'
import { isCluster } from '../redis-client.ts'
import { silentMsOf } from '../silence.ts'
import { createNodeReporter } from './cluster-nodes.ts'
import { REFUSED, WRITABLE } from './primary.ts'
import { tlsMismatch } from './tls-trouble.ts'
import { TROUBLE_LINES, type Trouble, troubleOf } from './trouble.ts'

const REPEAT_EVERY_MS = 30_000

/** Returns the address of Redis without the user name and password, and without the number of its first database. */
export function addressOf(redisUrl: string): string {
  const address = readRedisUrl(redisUrl)
  if (address.kind === 'invalid') return 'the configured address'
  const nodes = address.kind === 'cluster' ? address.nodes : [address]
  const hosts = nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  const database = address.kind === 'server' && address.database > 0 ? `/${address.database}` : ''
  return `redis${address.tls ? 's' : ''}${address.kind === 'cluster' ? '+cluster' : ''}://${hosts.join(',')}${database}`
}

export interface OutageReporter {
  /** Watches a connection until it is closed on purpose. */
  follow(redis: Commander): void
  /** Returns why connections cannot be used at the moment, or undefined if all of them can. */
  trouble(): Trouble | undefined
  /** Whether an outage of Redis or of a cluster node has been logged, and not yet its end. */
  isLogged(): boolean
}

const reporters = new Map<string, OutageReporter>()

/**
 * Returns this process's reporter for the given Redis address. The reporter exists as long as it watches a connection, and logs
 * to the logger supplied by the first caller.
 */
export function outageReporter(redisUrl: string, log: Log, repeatMs = REPEAT_EVERY_MS): OutageReporter {
  const known = reporters.get(redisUrl)
  if (known !== undefined) return known
  const usesTls = redisUrl.trim().toLowerCase().startsWith('rediss')
  const created = createReporter(addressOf(redisUrl), usesTls, log, repeatMs, () => reporters.delete(redisUrl))
  reporters.set(redisUrl, created)
  return created
}

/** Returns why this process's connections to Redis cannot be used at the moment, if the reporter knows. */
export function knownTrouble(redisUrl: string): Trouble | undefined {
  return reporters.get(redisUrl)?.trouble()
}

/** Returns whether this process has logged an outage of Redis or of a cluster node, and not yet its end. */
export function isOutageLogged(redisUrl: string): boolean {
  return reporters.get(redisUrl)?.isLogged() ?? false
}

interface Outage {
  readonly since: number
  failures: number
  nextLineAt: number
  trouble: Trouble
  /** What has been logged. */
  readonly logged: Set<Trouble>
}

function createReporter(
  address: string,
  usesTls: boolean,
  log: Log,
  repeatMs: number,
  onUnused: () => void,
): OutageReporter {
  const followed = new Set<Commander>()
  const down = new Set<Commander>()
  const nodes = createNodeReporter(address, log, (error) => troubleOf(error) !== undefined)
  let outage: Outage | undefined
  let wasUsable = false

  const unreachableMs = (): number => Math.round(performance.now() - (outage?.since ?? performance.now()))

  const failed = (redis: Commander, trouble: Trouble, wasConnected: boolean, err?: Error): void => {
    down.add(redis)
    const { first, still } = TROUBLE_LINES[trouble]
    const now = performance.now()
    // The other kinds of trouble say themselves why the connection cannot be used.
    const why = trouble === 'unusable' ? err : undefined
    const begin = (): void =>
      log.warn({ redis: address, err: why }, trouble === 'unreachable' && wasConnected ? LOST : first)
    if (outage === undefined) {
      outage = {
        since: now - silentMsOf(err),
        failures: 0,
        nextLineAt: now + repeatMs,
        trouble,
        logged: new Set([trouble]),
      }
      begin()
      return
    }
    outage.failures++
    outage.trouble = trouble
    if (!outage.logged.has(trouble)) {
      outage.logged.add(trouble)
      begin()
    } else if (now >= outage.nextLineAt) {
      outage.nextLineAt = now + repeatMs
      log.warn({ redis: address, unreachableMs: unreachableMs(), failures: outage.failures }, still)
    }
  }

  const refined = (trouble: Trouble, isOpening: boolean, error?: Error): Trouble =>
    trouble === 'unreachable' && !wasUsable ? (tlsMismatch(usesTls, isOpening, error) ?? trouble) : trouble

  const restored = (redis: Commander): void => {
    down.delete(redis)
    endOutage()
  }

  const endOutage = (): void => {
    if (outage === undefined || down.size > 0) return
    log.info({ redis: address, unreachableMs: unreachableMs() }, 'redis connection restored')
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
      let isRefused = false
      /** Whether the connection is open, but Redis has not replied yet. */
      let isOpening = false
      redis.on('connect', () => {
        isOpening = true
      })
      redis.on('ready', () => {
        isOpening = false
        wasConnected = true
        wasUsable = true
        // A connection to a server that refuses commands is of no use.
        if (!isRefused) restored(redis)
      })
      redis.on(REFUSED, (trouble: Trouble) => {
        isRefused = true
        failed(redis, trouble, wasConnected)
      })
      redis.on(WRITABLE, () => {
        isRefused = false
        restored(redis)
      })
      // ioredis emits 'error' if a connection can't be established, and only 'close' if the server ends it.
      redis.on('error', (error: Error) => {
        const trouble = troubleOf(error) ?? (redis.status === 'ready' ? undefined : 'unusable')
        if (trouble === undefined) log.warn({ redis: address, err: error }, 'redis reported an error')
        else failed(redis, refined(trouble, isOpening, error), wasConnected, error)
      })
      redis.on('reconnecting', () => {
        if (!down.has(redis)) failed(redis, refined('unreachable', isOpening), wasConnected)
        isOpening = false
      })
      redis.on('end', () => closed(redis))
    },
    trouble: () => outage?.trouble,
    isLogged: () => outage !== undefined || nodes.isAnyAway(),
  }
}

const LOST = 'redis connection lost'

/** Returns whether an error only means that Redis cannot be used, which the outage reporter already logs. */
export function isConnectionError(error: unknown): boolean {
  return troubleOf(error) !== undefined
}
