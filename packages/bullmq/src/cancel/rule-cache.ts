// The cancel rules as one feed knows them: asked for in time, and not trusted for longer than a canceller waits.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import { type CancelRule, type FetchedTask, matches, stopsRunning, tagsOf } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../keys.ts'
import { throttledLog } from '../throttled-log.ts'
import { ASK_EVERY_MS, NO_RULES, readRules, TRUSTED_MS } from './cancel-rules.ts'

/** A feed that has not asked for so long is gone, in ms. */
const FORGOTTEN_MS = 60_000
/** Nobody waits for longer to hear that a feed knows a rule. */
const KNOWN_KEPT_MS = 10_000
/** After an answer that was an error, in ms. */
const ASK_AGAIN_MS = 200

/** KEYS: the feeds, the rules. ARGV: the feed, from when on feeds are forgotten, in ms before now. Returns the rules. */
const ASK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
return redis.call('HVALS', KEYS[2])
`

export interface RuleCache {
  /** Whether {@link covering} may be believed now. */
  isFresh(): boolean
  /** Resolves when it is fresh, as long as that takes; or when it is closed. */
  fresh(): Promise<void>
  /** The rule that covers a task, so that it may not start. */
  covering(task: FetchedTask): CancelRule | undefined
  /** There may be a new rule. */
  hear(): void
  close(): void
}

/** `apply` is called with the rules, when there are any, each time that they have been asked for; then they are known. */
export function openRuleCache(
  redis: Redis,
  keys: QueueKeys,
  apply: (covering: RuleCache['covering']) => void,
  log: Log,
): RuleCache {
  const feed = randomUUID()
  const failed = throttledLog((err: unknown, suppressed) =>
    log.warn({ err, suppressed }, 'cancel rules could not be asked for'),
  )
  let rules = NO_RULES
  let acknowledged = new Set<string>()
  /** On the monotonic clock: when the question was sent whose answer is known. */
  let askedAt = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  let heard = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  const isFresh = (): boolean => performance.now() - askedAt < TRUSTED_MS
  const covering = (task: FetchedTask): CancelRule | undefined => {
    if (rules.length === 0) return undefined
    const about = { task: task.task, tags: tagsOf(task.envelope), enqueuedAt: task.enqueuedAt }
    return rules.find((rule) => matches(rule, about))
  }

  const askOnce = async (): Promise<void> => {
    const sentAt = performance.now()
    const answer = await redis.eval(ASK, 2, keys.cancelFeeds, keys.cancelRules, feed, FORGOTTEN_MS)
    // Where two cover a task, the one that stops it counts.
    rules = readRules(answer).toSorted((one, other) => Number(stopsRunning(other)) - Number(stopsRunning(one)))
    askedAt = sentAt
    if (rules.length > 0) apply(covering)
    const fresh = rules.filter(({ id }) => !acknowledged.has(id))
    acknowledged = new Set(rules.map(({ id }) => id))
    if (fresh.length === 0) return
    const known = redis.pipeline()
    for (const { id } of fresh) known.sadd(keys.cancelKnown(id), feed).pexpire(keys.cancelKnown(id), KNOWN_KEPT_MS)
    await known.exec()
  }

  const ask = (): Promise<void> => {
    if (asking !== undefined) return asking
    clearTimeout(timer)
    heard = false
    asking = askOnce()
      .then(
        () => ASK_EVERY_MS,
        (err: unknown) => {
          if (!closed) failed(err)
          return ASK_AGAIN_MS
        },
      )
      .then((pauseMs) => {
        asking = undefined
        if (closed) return
        timer = setTimeout(ask, heard ? 0 : pauseMs)
        timer.unref()
      })
    return asking
  }

  return {
    isFresh,
    async fresh() {
      while (!isFresh() && !closed) await ask()
    },
    covering,
    hear() {
      // What is being asked may have been answered before there was the rule.
      if (asking === undefined) void ask()
      else heard = true
    },
    close() {
      closed = true
      clearTimeout(timer)
      // So that nobody waits for it. It is forgotten anyway.
      redis.zrem(keys.cancelFeeds, feed).catch(() => {})
    },
  }
}
