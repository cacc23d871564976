// Checks the server's settings when a connection is established and every 5 min, and logs settings that put tasks at risk.
import type { Log } from '@bullpen/contract'
import type { Commander } from '../../scripts/script.ts'
import { addressOf } from '../outages/outage-reporter.ts'
import { type CheckResult, checkServer, type ServerCheck } from './server-checks.ts'
import { describeServer, serversOf } from './server-description.ts'

const CHECK_EVERY_MS = 300_000

/** The log message for each problem. The line's fields contain the values. */
const MESSAGES: Readonly<Record<ServerCheck, string>> = {
  version: 'redis is too old for Bullpen',
  persistence: 'redis appendonly is off: a restart of Redis loses tasks',
  eviction: 'redis maxmemory-policy allows eviction: Redis may delete tasks',
  maxmemory: 'redis maxmemory is not set: the machine may run out of memory and kill Redis',
  listpack: 'redis hash-max-listpack-value is small: waiting tasks take about twice the memory',
}

export interface ServerMonitor {
  /**
   * Returns whether each check found a problem in the last round. In a cluster, a check counts as having found a problem if it
   * found one on any node. Checks that Redis does not permit are left out. Does not query Redis.
   */
  problems(): ReadonlyMap<ServerCheck, boolean>
  close(): void
}

export interface ServerMonitorOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly log: Log
  /** The level at which a problem is logged. */
  readonly level: 'warn' | 'info'
  /** How often the checks are repeated, in ms. Defaults to 300,000. Tests set this. */
  readonly everyMs?: number | undefined
}

/**
 * Starts checking the server. Each problem is logged once, when it is found. A round sends two commands to each server. The timer
 * does not keep the process alive.
 */
export function openServerMonitor(options: ServerMonitorOptions): ServerMonitor {
  const { redis, redisUrl, log, level, everyMs = CHECK_EVERY_MS } = options
  const address = addressOf(redisUrl)
  /** The results of the last round by node. A single server's node is ''. */
  let byNode: ReadonlyMap<string, ReadonlyMap<ServerCheck, CheckResult>> = new Map()
  let isChecking = false
  let isUnreadableLogged = false

  const report = (node: string, results: ReadonlyMap<ServerCheck, CheckResult>): void => {
    const about = { redis: address, ...(node !== '' && { node }) }
    const before = byNode.get(node)
    for (const [check, { isOk, found, expected }] of results) {
      const wasOk = before?.get(check)?.isOk ?? true
      if (!isOk && wasOk) log[level]({ ...about, check, found, expected }, MESSAGES[check])
      if (isOk && !wasOk) log.info({ ...about, check, found }, 'redis setting corrected')
    }
  }

  const checkAll = async (): Promise<void> => {
    const descriptions = await Promise.all(
      serversOf(redis).map(async ([node, server]) => [node, await describeServer(server)] as const),
    )
    const isReadable = descriptions.every(
      ([, { info, listpackValue }]) => info !== undefined && listpackValue !== undefined,
    )
    if (!isReadable && !isUnreadableLogged) {
      isUnreadableLogged = true
      log.info({ redis: address }, 'some redis settings are not checked: INFO or CONFIG GET is not permitted')
    }
    const results = new Map(descriptions.map(([node, description]) => [node, checkServer(description)]))
    for (const [node, checks] of results) report(node, checks)
    byNode = results
  }
  const check = (): void => {
    if (isChecking) return
    isChecking = true
    // The outage reporter logs connection errors. The next round checks again.
    checkAll()
      .catch((err: unknown) => log.debug({ err }, 'redis settings could not be checked'))
      .finally(() => {
        isChecking = false
      })
  }

  redis.on('ready', check)
  const timer = setInterval(check, everyMs).unref()
  return {
    problems() {
      const problems = new Map<ServerCheck, boolean>()
      for (const results of byNode.values()) {
        for (const [name, { isOk }] of results) problems.set(name, !isOk || problems.get(name) === true)
      }
      return problems
    },
    close() {
      clearInterval(timer)
      redis.off('ready', check)
    },
  }
}
