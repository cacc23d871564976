// Cancels all tasks of a queue that match a filter. A task matches if it was enqueued at or before the filter's time and has the
// filter's task name, tag and group. A filter without one of these matches tasks with any. A rule with the reason `queue_shutdown`
// does not signal running attempts, because the queue's drain handles them.
//
// The protocol: a filter is stored as a cancel rule, and once the caller has its response, no matching task can start.
//   1. One script stores the rule with Redis's time, announces that there is a new rule, and returns the consumers that have read
//      the rules within the last 2.5 s (KNOWN_TO_ALL_MS).
//   2. Each consumer keeps a copy of the rules (rule-cache.ts). While it has tasks, it reads the rules every 2 s. It also reads
//      them whenever it is notified, and when it is woken after it was idle. It starts a task only if its copy was read within
//      the last 2.4 s (TRUSTED_MS) and no rule matches the task. This check and the start are in one turn of the event loop. (If
//      the operating system suspends the process between the two, that one task starts when the process resumes.) After each
//      read, the consumer aborts the running attempts that match, and acknowledges the rules that are new to it. After a failed
//      read, the consumer tries again within 0.2 to 1 s. If its copy expires in the meantime, the consumer starts no task until a
//      read succeeds.
//   3. The canceller waits, for at most 2.5 s, until those consumers have acknowledged the rule. By then, the copy of any
//      consumer that stayed silent has expired, so that it must read the rules again before it starts a task.
//   4. Matching tasks are shown as cancelled (underRules). The leader is woken as soon as the rule is stored. Its bulk canceller
//      (bulk-canceller.ts) ends the tasks in Redis, page by page, in the same way as a cancel by id, and deletes the rule when a
//      whole pass finds no matching task.
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttemptRecord, BullpenError, isFinal, type TaskRecord } from '@bullpen/contract'
import {
  type CancelProgress,
  type CancelRule,
  covers,
  endWithoutStart,
  MAX_ATTEMPT_RECORDS,
} from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { storeRuleScript } from '../store/scripts.ts'

/** The `worker` in the attempt record of a task that a rule ended, whichever process ended the task in Redis. */
export const BULK_CANCELLER = 'bulk-canceller'

/** How often a consumer that has tasks reads the rules even if it is not notified, in ms. */
export const READ_EVERY_MS = 2_000
/** How long a consumer may start tasks after it has read the rules, in ms. */
export const TRUSTED_MS = 2_400
/** The age, in ms, at which a rule has been read by every consumer that may start tasks. Must be longer than {@link TRUSTED_MS}. */
export const KNOWN_TO_ALL_MS = 2_500

const ruleSchema = z.object({
  id: z.string(),
  queue: z.string(),
  task: z.string().optional(),
  tag: z.string().optional(),
  group: z.string().optional(),
  before: z.number(),
  reason: z.enum(['cancelled', 'queue_shutdown']),
  by: z.string(),
  at: z.number(),
})

export const NO_RULES: readonly CancelRule[] = Object.freeze([])

/** Parses stored rules, skipping those that this version can't read. */
export function parseRules(texts: unknown): readonly CancelRule[] {
  if (!Array.isArray(texts) || texts.length === 0) return NO_RULES
  return texts.flatMap((text) => ruleSchema.safeParse(parseJson(String(text))).data ?? [])
}

/**
 * How many rules a queue may have. Each consumer reads all rules every two seconds, as does each look-up of a task. A drain of
 * the queue has a higher limit, so that other rules cannot make the drain fail.
 */
export const MAX_RULES: Readonly<Record<CancelRule['reason'], number>> = { cancelled: 200, queue_shutdown: 210 }

/**
 * Stores the rule in one round trip. The returned `known` resolves once no consumer can start a matching task, and never rejects.
 *
 * @throws BullpenError `too_many_cancels` if the queue has {@link MAX_RULES} rules. Nothing is stored then.
 */
export async function storeRule(
  redis: Commander,
  keys: QueueKeys,
  rule: NewRule,
): Promise<{ readonly rule: CancelRule; readonly known: Promise<void> }> {
  const stored = await store(redis, keys, rule, '')
  if (stored === null) throw new BullpenError('internal_error', 'a rule without a drain was not stored')
  const [text, consumers] = stored
  return { rule: ruleSchema.parse(parseJson(text)), known: untilKnown(redis, keys, rule.id, consumers) }
}

/**
 * Stores the rule of a drain, and notes that it was stored, unless that drain is no longer in force. Takes one round trip.
 *
 * @throws BullpenError `too_many_cancels` like {@link storeRule}.
 */
export async function storeRuleOfDrain(redis: Commander, keys: QueueKeys, rule: NewRule, drain: string): Promise<void> {
  await store(redis, keys, rule, drain)
}

type NewRule = Omit<CancelRule, 'at'>

async function store(
  redis: Commander,
  keys: QueueKeys,
  rule: NewRule,
  drain: string,
): Promise<readonly [rule: string, consumers: readonly string[]] | null> {
  // A rule without a group does not use the key.
  const names = {
    ...keys,
    progress: keys.cancelProgress(rule.id),
    cancelledGroup: keys.cancelledGroup(rule.group ?? ''),
  }
  const text = JSON.stringify(rule).slice(0, -1)
  const limit = MAX_RULES[rule.reason]
  const { cancelRulesChannel: channel } = keys
  const args = { id: rule.id, rule: text, limit, trustedMs: KNOWN_TO_ALL_MS, channel, group: rule.group ?? '', drain }
  const stored = await runScript(redis, storeRuleScript, names, args)
  if (stored === 'full') {
    throw new BullpenError(
      'too_many_cancels',
      `queue '${rule.queue}' already has ${limit} unfinished cancellations by filter, which is the maximum; retry when one has finished, or combine several into one with a broader filter`,
    )
  }
  return stored
}

/** The delay between two checks for acknowledgements, in ms. It doubles from `firstMs` up to `lastMs`. */
const CHECK_DELAY = { firstMs: 1, lastMs: 32 }

/** Waits for the acknowledgements or, if they can't be read, until the consumers' copies have expired. */
async function untilKnown(redis: Commander, keys: QueueKeys, id: string, consumers: readonly string[]): Promise<void> {
  const until = performance.now() + KNOWN_TO_ALL_MS
  for (let delayMs = CHECK_DELAY.firstMs; consumers.length > 0; delayMs = Math.min(delayMs * 2, CHECK_DELAY.lastMs)) {
    const leftMs = until - performance.now()
    if (leftMs <= 0) return
    await sleep(Math.min(delayMs, leftMs))
    const acknowledged = new Set(await redis.smembers(keys.cancelKnown(id)).catch(() => []))
    if (consumers.every((consumer) => acknowledged.has(consumer))) return
  }
}

/** Reads a rule and its progress in one round trip. */
export async function readProgress(redis: Commander, keys: QueueKeys, id: string): Promise<CancelProgress | undefined> {
  const [text, ended, doneAt] = await redis.hmget(keys.cancelProgress(id), 'rule', 'ended', 'doneAt')
  const [rule] = parseRules(text ? [text] : [])
  if (rule === undefined) return undefined
  return { rule, ended: Number(ended ?? 0), doneAt: doneAt ? Number(doneAt) : undefined }
}

/** Returns the task as users see it: cancelled if a rule matches it and no worker is running it. */
export function underRules(task: TaskRecord, rules: readonly CancelRule[]): TaskRecord {
  if (rules.length === 0 || task.status === 'active' || isFinal(task.status)) return task
  const retriedAt = task.retries?.findLast(({ copy }) => copy === undefined)?.at
  const rule = rules.find((each) => covers(each, { ...task, retriedAt }))
  if (rule === undefined) return task
  const end = endByRule(rule, task.attemptsMade, task.attempts.at(-1))
  return {
    ...task,
    status: 'cancelled',
    dueAt: undefined,
    endedAt: end.endedAt,
    progress: undefined,
    attempts: [...task.attempts, end].slice(-MAX_ATTEMPT_RECORDS),
  }
}

/**
 * Builds the attempt record of a task that a rule ended. The record's time is the rule's time, or the end of the last attempt if
 * that is later.
 */
export function endByRule(
  { reason, by, at }: CancelRule,
  attemptsMade: number,
  last: AttemptRecord | undefined,
): AttemptRecord {
  return endWithoutStart(reason, {
    attempt: attemptsMade + 1,
    process: BULK_CANCELLER,
    now: Math.max(at, last?.endedAt ?? 0),
    by,
  })
}
