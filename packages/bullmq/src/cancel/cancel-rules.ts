// Cancel rules in Redis: how one is stored so that nothing that it covers starts any more, and read by everybody else.
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttemptRecord, isFinal, type TaskRecord } from '@bullpen/contract'
import {
  type CancelProgress,
  type CancelRule,
  endWithoutStart,
  MAX_ATTEMPT_RECORDS,
  matches,
} from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'

/** A feed asks for the rules this often, in ms, whatever it hears. */
export const ASK_EVERY_MS = 2_000
/** For so long after it has asked, a feed may start tasks by what it knows. */
export const TRUSTED_MS = 2_400
/** Longer than any feed trusts what it knew before: a rule this old is known to all that start tasks. */
export const KNOWN_TO_ALL_MS = 2_500

const ruleSchema = z.object({
  id: z.string(),
  queue: z.string(),
  task: z.string().optional(),
  tag: z.string().optional(),
  before: z.number(),
  reason: z.enum(['cancelled', 'queue_shutdown']),
  by: z.string(),
  at: z.number(),
})

/** Rules as they are stored; what can't be read is left to whoever can. */
export function readRules(texts: unknown): readonly CancelRule[] {
  if (!Array.isArray(texts) || texts.length === 0) return NO_RULES
  return texts.flatMap((text) => ruleSchema.safeParse(parseJson(String(text))).data ?? [])
}

export const NO_RULES: readonly CancelRule[] = Object.freeze([])

/**
 * KEYS: the rules, the feeds, the rule's progress. ARGV: the rule's id, the rule as JSON without its last brace, how long in
 * ms a feed may trust what it knows, the channel. Returns the feeds that may not know of it and may start tasks.
 */
const STORE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local rule = ARGV[2] .. ',"at":' .. string.format('%.0f', now) .. '}'
redis.call('HSET', KEYS[3], 'rule', rule)
redis.call('HSET', KEYS[1], ARGV[1], rule)
redis.call('PUBLISH', ARGV[4], ARGV[1])
return { rule, redis.call('ZRANGEBYSCORE', KEYS[2], now - ARGV[3], '+inf') }
`

/** Durable when it resolves. One round trip. The second: resolves when no feed starts what it covers. */
export async function storeRule(redis: Redis, keys: QueueKeys, rule: Omit<CancelRule, 'at'>) {
  const names = [keys.cancelRules, keys.cancelFeeds, keys.cancelProgress(rule.id)]
  const text = JSON.stringify(rule).slice(0, -1)
  const answer = await redis.eval(STORE, names.length, ...names, rule.id, text, KNOWN_TO_ALL_MS, keys.cancelChannel)
  const [stored, feeds] = answer as [string, string[]]
  return { rule: ruleSchema.parse(parseJson(stored)) as CancelRule, known: untilKnown(redis, keys, rule.id, feeds) }
}

/** Between two looks at who knows it, in ms: doubled from the first to the last. */
const LOOKS = { firstMs: 1, lastMs: 32 }

/** Never rejects: a feed that can't be heard of has asked again by then, or trusts nothing that it knows. */
async function untilKnown(redis: Redis, keys: QueueKeys, id: string, feeds: readonly string[]): Promise<void> {
  const until = performance.now() + KNOWN_TO_ALL_MS
  for (let pauseMs = LOOKS.firstMs; feeds.length > 0; pauseMs = Math.min(pauseMs * 2, LOOKS.lastMs)) {
    const leftMs = until - performance.now()
    if (leftMs <= 0) return
    await sleep(Math.min(pauseMs, leftMs))
    const knowing = new Set(await redis.smembers(keys.cancelKnown(id)).catch(() => []))
    if (feeds.every((feed) => knowing.has(feed))) return
  }
}

/** One round trip. */
export async function readProgress(redis: Redis, keys: QueueKeys, id: string): Promise<CancelProgress | undefined> {
  const [text, ended, doneAt] = await redis.hmget(keys.cancelProgress(id), 'rule', 'ended', 'doneAt')
  const [rule] = readRules(text ? [text] : [])
  if (rule === undefined) return undefined
  return { rule, ended: Number(ended ?? 0), doneAt: doneAt ? Number(doneAt) : undefined }
}

/** One that a worker has taken, and ends without a start. Nobody waits for this. */
export function countEnded(redis: Redis, keys: QueueKeys, { id }: CancelRule): void {
  redis.hincrby(keys.cancelProgress(id), 'ended', 1).catch(() => {})
}

/** What ends a task that nobody runs by a rule: at the request, or at the end of the attempt that it came too late for. */
export function endByRule(
  { reason, by, at }: CancelRule,
  attempts: number,
  last: AttemptRecord | undefined,
): AttemptRecord {
  return endWithoutStart(reason, { attempt: attempts + 1, process: by, now: Math.max(at, last?.endedAt ?? 0) })
}

/** The task as it is told: one that a rule covers and nobody runs is cancelled, wherever it stands in Redis. */
export function underRules(task: TaskRecord, rules: readonly CancelRule[]): TaskRecord {
  if (rules.length === 0 || task.status === 'active' || isFinal(task.status)) return task
  const rule = rules.find((each) => matches(each, task))
  if (rule === undefined) return task
  const end = endByRule(rule, task.attemptsMade, task.attempts.at(-1))
  const history = [...task.attempts, end].slice(-MAX_ATTEMPT_RECORDS)
  return {
    ...task,
    status: 'cancelled',
    dueAt: undefined,
    endedAt: end.endedAt,
    progress: undefined,
    attempts: history,
  }
}
