// Holds one consumer's copy of the cancel rules. As long as the consumer has tasks, the cache reads the rules regularly. It also
// reads them whenever the consumer is notified. The copy expires before a canceller stops waiting for this consumer. See
// by-filter.ts for the protocol.
//
// An idle consumer does not read the rules, so its copy expires and no canceller waits for it. When the consumer is woken, it
// reads the rules together with its next task (`prepare`), which takes no extra round trip.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import {
  type CancelRule,
  covers,
  type FetchedTask,
  groupIn,
  retriedAtOf,
  stopsRunning,
  tagsOf,
} from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { acknowledgeRuleScript, readRulesScript } from '../store/scripts.ts'
import { NO_RULES, parseRules, READ_EVERY_MS, TRUSTED_MS } from './by-filter.ts'

/** How long a consumer is remembered after it last read the rules, in ms. */
const FORGET_CONSUMER_MS = 60_000
/** How long acknowledgements are kept, in ms. No canceller waits for them this long. */
const KEEP_ACKNOWLEDGED_MS = 10_000
/** The delay before the rules are read again after a read has failed, in ms. It doubles up to the longest delay. */
export const RETRY_DELAY = { firstMs: 200, longestMs: 1_000 }

export interface RuleCache {
  /** Returns whether the copy is recent enough for tasks to be started. */
  isFresh(): boolean
  /** Resolves when the copy is fresh or the cache is closed. */
  untilFresh(): Promise<void>
  /** Returns the rule that matches a task, or undefined if there is none. */
  matching(task: FetchedTask): CancelRule | undefined
  /** Reads the rules again soon, because there may be a new one. */
  refresh(): void
  /** Reads the rules unless the copy is fresh, because a task is about to be fetched. */
  prepare(): void
  close(): void
}

export interface RuleCacheHost {
  /** Called after each read that returned at least one rule, before the rules are acknowledged. */
  apply(matching: RuleCache['matching']): void
  /** Returns whether the consumer has tasks, which a new rule may match. */
  hasTasks(): boolean
}

export function createRuleCache(redis: Commander, keys: QueueKeys, host: RuleCacheHost, log: Log): RuleCache {
  const consumer = randomUUID()
  const logFailure = throttledLog((err: unknown, suppressed) =>
    log.warn({ err, suppressed }, 'cancel rules could not be read'),
  )
  let rules = NO_RULES
  let acknowledged = new Set<string>()
  /** When the newest successful read was sent, on the monotonic clock. */
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  let isStale = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  /** Whether the consumer has checked the copy's freshness since the last read, because a task was about to start. */
  let isInUse = false
  /** How many reads have failed since the last successful one. */
  let failures = 0
  /** Resolved when the next read is due or has begun. */
  let nextRead = Promise.withResolvers<void>()

  const isFresh = (): boolean => performance.now() - readAt < TRUSTED_MS
  const matching = (task: FetchedTask): CancelRule | undefined => {
    if (rules.length === 0) return undefined
    const { envelope, enqueuedAt } = task
    const candidate = {
      task: task.task,
      tags: tagsOf(envelope),
      group: groupIn(envelope),
      enqueuedAt,
      retriedAt: retriedAtOf(envelope),
    }
    return rules.find((rule) => covers(rule, candidate))
  }

  const readOnce = async (): Promise<void> => {
    const sentAt = performance.now()
    const texts = await runScript(redis, readRulesScript, keys, { consumer, silence: FORGET_CONSUMER_MS })
    // If several rules match a task, a rule that stops running tasks takes precedence.
    rules = parseRules(texts).toSorted((one, other) => Number(stopsRunning(other)) - Number(stopsRunning(one)))
    readAt = sentAt
    if (rules.length > 0) host.apply(matching)
    await acknowledge()
  }

  const acknowledge = async (): Promise<void> => {
    const news = rules.filter(({ id }) => !acknowledged.has(id))
    const args = { consumer, keepMs: KEEP_ACKNOWLEDGED_MS }
    await Promise.all(
      news.map(({ id }) => runScript(redis, acknowledgeRuleScript, { known: keys.cancelKnown(id) }, args)),
    )
    acknowledged = new Set(rules.map(({ id }) => id))
  }

  const read = (): Promise<void> => {
    if (reading !== undefined) return reading
    clearTimeout(timer)
    timer = undefined
    isStale = false
    isInUse = false
    nextRead.resolve()
    nextRead = Promise.withResolvers()
    reading = readOnce()
      .then(
        () => {
          failures = 0
        },
        (err: unknown) => {
          failures++
          if (!isClosed && !isConnectionError(err)) logFailure(err)
        },
      )
      .then(() => {
        reading = undefined
        if (isClosed) return
        timer = setTimeout(onTimer, delayOfNextRead())
        timer.unref()
      })
    return reading
  }

  const delayOfNextRead = (): number => {
    if (failures > 0) return Math.min(RETRY_DELAY.firstMs * 2 ** (failures - 1), RETRY_DELAY.longestMs)
    return isStale ? 0 : READ_EVERY_MS
  }

  const onTimer = (): void => {
    timer = undefined
    nextRead.resolve()
    if (isStale || isInUse || host.hasTasks()) void read()
  }

  return {
    isFresh() {
      isInUse = true
      // No read is scheduled if the consumer was idle when the timer last fired.
      if (timer === undefined && reading === undefined && !isClosed) void read()
      return isFresh()
    },
    async untilFresh() {
      while (!isFresh() && !isClosed) {
        await read()
        // If Redis rejects the script immediately, an immediate retry would keep this process and Redis busy.
        if (failures > 0 && !isFresh() && !isClosed) await nextRead.promise
      }
    },
    matching,
    refresh() {
      // A read that is in progress may have reached Redis before the new rule was stored.
      if (reading === undefined) void read()
      else isStale = true
    },
    prepare() {
      if (!isFresh() && !isClosed) void read()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      nextRead.resolve()
      // Leave the set, so that no canceller waits for this consumer. If this fails, the entry expires by itself.
      redis.zrem(keys.cancelConsumers, consumer).catch(() => {})
    },
  }
}
