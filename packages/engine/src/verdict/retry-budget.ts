// Decides when a retry may start within its definition's retry budget. Redis's scripts decide in the same way
// (packages/bullmq/src/store/lua/includes/end/retry-budget.lua).
//
// The whole fleet shares a definition's budget, as in Finagle and Linkerd. Each retry needs one of these:
//
//   - The ratio: within 10 s, there may be `ratio` retries for each attempt that has ended.
//   - A token: `minRetriesPerSecond` tokens are added per second. Up to 10 s' worth of tokens are saved, so the single retry of a
//     quiet definition is never held.
//
// Without either, the retry is held. Held retries form a line: each one has a time at which it starts in any case, one interval
// of the minimum rate after the time of the one before it. While there is a line, every further retry joins its end. Otherwise,
// a task that happens to fail at the right moment could use up its attempts while others wait. The end of a retry, or of any
// failed attempt, releases held retries as far as the ratio and the tokens allow, the first one first. If that leaves a gap
// before the first retry that is still held, the next ones move up.
//
// A retry that succeeds has not added to the load of an outage, so it returns a token, as in the AWS SDKs. Therefore, a backlog
// is retried at the minimum rate during an outage, and faster and faster once it is over.
import type { RetryBudget } from '@bullpen/contract'

/** How long an attempt counts, and for how long tokens are saved, in s. */
export const BUDGET_WINDOW_S = 10

/** How many held retries one failed attempt or one end of a retry releases at most. */
export const MAX_RELEASED = 100

/** The shortest gap, in intervals, that retries move up to fill, and how many of them do so at once. */
export const GAP = 5
export const MOVED_UP = 20

/** All times are in ms since 1970. */
export interface HeldRetry {
  readonly id: string
  /** When the task's own backoff ends. The task never starts before. */
  readonly backoffEndsAt: number
  /** The retry's place in the line. */
  readonly slotAt: number
  /** When the retry starts unless it is released: when its slot begins, or when its backoff ends if that is later. */
  readonly startsAt: number
}

/** How much of a definition's budget is used, and which retries are held. The keys of the maps are seconds since 1970. */
export interface BudgetUse {
  /** How many attempts ended in each second. */
  readonly attempts: ReadonlyMap<number, number>
  /** How many retries the ratio allowed in each second. */
  readonly byRatio: ReadonlyMap<number, number>
  readonly tokens: number
  /** When `tokens` was computed. */
  readonly at: number
  /** The line, in order. */
  readonly held: readonly HeldRetry[]
}

/** A retry that starts earlier than was decided before, and when it starts. */
export type MovedRetry = Pick<HeldRetry, 'id' | 'startsAt'>

export interface BudgetDecision {
  readonly use: BudgetUse
  /** The retries that were released or have moved up. */
  readonly moved: readonly MovedRetry[]
}

export interface FailedAttempt {
  readonly id: string
  readonly backoffEndsAt: number
  /** When the total timeout expires. A retry is never held longer, so the task never ends later. */
  readonly totalTimeoutAt: number | 'none'
}

/** Whether this task still waits for its slot. It does not if it was cancelled, for example. */
export type IsHeld = (retry: HeldRetry) => boolean

/** Returns the budget of a definition without any attempts. */
export function unusedBudget(now: number, budget: RetryBudget): BudgetUse {
  return { attempts: new Map(), byRatio: new Map(), tokens: maxTokens(budget), at: now, held: [] }
}

/** Counts an attempt that has ended, whether it succeeded or not. */
export function countAttempt(use: BudgetUse, now: number): BudgetUse {
  return { ...use, attempts: plusOne(use.attempts, now) }
}

/** Decides when the retry of a failed attempt starts, which has been counted already. */
export function admitRetry(
  use: BudgetUse,
  { id, backoffEndsAt, totalTimeoutAt }: FailedAttempt,
  now: number,
  budget: RetryBudget,
  isHeld: IsHeld,
): BudgetDecision & Pick<HeldRetry, 'startsAt'> {
  const decision = release(advance(use, now, budget), now, budget, isHeld)
  const { held } = decision.use
  if (held.length === 0 && mayStart(decision.use, now, budget)) {
    return { ...decision, use: spend(decision.use, now, budget), startsAt: backoffEndsAt }
  }
  const last = held.at(-1)
  const slotAt = last === undefined ? nextTokenAt(decision.use, now, budget) : last.slotAt + intervalMs(budget)
  const latest = totalTimeoutAt === 'none' ? Number.POSITIVE_INFINITY : totalTimeoutAt
  const startsAt = Math.max(backoffEndsAt, Math.min(Math.ceil(slotAt), latest))
  return { ...decision, use: { ...decision.use, held: [...held, { id, backoffEndsAt, slotAt, startsAt }] }, startsAt }
}

/** Decides which held retries start because a retry has ended, either with success or as dead. */
export function endRetry(
  use: BudgetUse,
  end: 'completed' | 'dead',
  now: number,
  budget: RetryBudget,
  isHeld: IsHeld,
): BudgetDecision {
  const { tokens, ...rest } = advance(use, now, budget)
  const returned = end === 'completed' ? Math.min(maxTokens(budget), tokens + 1) : tokens
  return release({ ...rest, tokens: returned }, now, budget, isHeld)
}

/** Adds the tokens since the last decision. Each held retry whose slot has begun has used one of them. */
function advance(use: BudgetUse, now: number, budget: RetryBudget): BudgetUse {
  const held = use.held.filter(({ slotAt }) => slotAt > now)
  const added = Math.max(0, now - use.at) / intervalMs(budget) - (use.held.length - held.length)
  // Workers' clocks differ slightly, and no time may be counted twice.
  return { ...use, tokens: Math.min(maxTokens(budget), use.tokens + added), at: Math.max(use.at, now), held }
}

function release(use: BudgetUse, now: number, budget: RetryBudget, isHeld: IsHeld): BudgetDecision {
  const released: MovedRetry[] = []
  let left = use
  while (released.length < MAX_RELEASED && mayStart(left, now, budget)) {
    const [first, ...held] = left.held
    if (first === undefined) break
    left = { ...left, held }
    if (!isHeld(first)) continue
    left = spend(left, now, budget)
    released.push({ id: first.id, startsAt: Math.max(now, first.backoffEndsAt) })
  }
  const { held, moved } = moveUp(left, now, budget, isHeld)
  return { use: { ...left, held }, moved: [...released, ...moved] }
}

/** Fills a gap before the first held retry, which the release of others has left. */
function moveUp(use: BudgetUse, now: number, budget: RetryBudget, isHeld: IsHeld) {
  const { held } = use
  const [first] = held
  const interval = intervalMs(budget)
  const from = nextTokenAt(use, now, budget)
  if (first === undefined || first.slotAt - from < GAP * interval) return { held, moved: [] }
  const before = held.slice(0, MOVED_UP).filter(isHeld)
  const after = before.map((each, i) => {
    const slotAt = from + i * interval
    return { ...each, slotAt, startsAt: Math.max(each.backoffEndsAt, Math.min(Math.ceil(slotAt), each.startsAt)) }
  })
  const moved = after.filter(({ startsAt }, i) => startsAt !== before[i]?.startsAt)
  return { held: [...after, ...held.slice(MOVED_UP)], moved: moved.map(({ id, startsAt }) => ({ id, startsAt })) }
}

/** Returns when there will be a token for the first held retry. */
function nextTokenAt({ tokens }: BudgetUse, now: number, budget: RetryBudget): number {
  return now + (tokens < 1 ? 1 - tokens : 1) * intervalMs(budget)
}

function mayStart(use: BudgetUse, now: number, budget: RetryBudget): boolean {
  return ratioAllows(use, now, budget) || use.tokens >= 1 - ROUNDING
}

function spend(use: BudgetUse, now: number, budget: RetryBudget): BudgetUse {
  return ratioAllows(use, now, budget)
    ? { ...use, byRatio: plusOne(use.byRatio, now) }
    : { ...use, tokens: use.tokens - 1 }
}

function ratioAllows({ attempts, byRatio }: BudgetUse, now: number, { ratio }: RetryBudget): boolean {
  return ratio * recent(attempts, now) - recent(byRatio, now) >= 1 - ROUNDING
}

/** A sum of fractions may be slightly less than the whole number that it stands for. */
const ROUNDING = 1e-6

/** Returns the interval of the minimum rate, in ms. */
export function intervalMs({ minRetriesPerSecond }: RetryBudget): number {
  return 1_000 / minRetriesPerSecond
}

function maxTokens({ minRetriesPerSecond }: RetryBudget): number {
  return Math.max(1, BUDGET_WINDOW_S * minRetriesPerSecond)
}

function recent(counts: ReadonlyMap<number, number>, now: number): number {
  let sum = 0
  for (const [second, count] of counts) if (second > secondOf(now) - BUDGET_WINDOW_S) sum += count
  return sum
}

/** Adds one to the count of the current second, and forgets the counts that no longer matter. */
function plusOne(counts: ReadonlyMap<number, number>, now: number): ReadonlyMap<number, number> {
  const second = secondOf(now)
  const kept = new Map([...counts].filter(([each]) => each > second - BUDGET_WINDOW_S))
  return kept.set(second, (kept.get(second) ?? 0) + 1)
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1_000)
}
