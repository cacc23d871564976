// Decides the verdict on a task when one of its attempts ends.
//
// The verdict determines what happens to the task next. No other code makes this decision, which depends only on the arguments of
// `decide`: how the attempt ended, how many attempts the retry policy still allows, when the task's total timeout expires, the
// time, and a random number. `finish` (attempt/finish.ts) calls `decide` for an attempt that has run, and consumers carry out the
// verdict.
import type { OnInterrupt, RetryPolicy, TaskDefinition } from '@bullpen/contract'
import type { Outcome, Verdict } from '../ports/attempt-result.ts'
import type { Clock, Random } from '../ports/clock.ts'
import type { Survival } from '../quarantine/decision.ts'
import { backoffMs } from './backoff.ts'
import { outcomeOfError } from './outcome.ts'

export interface RetryContext {
  /** The number of this attempt among the attempts that count, starting from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** How many earlier attempts of the task did not count. */
  readonly uncounted: number
  /** When the total timeout expires, in ms since 1970. */
  readonly totalTimeoutAt: number | 'none'
  /** Whether no handler has ever been started for this task. */
  readonly neverStarted: boolean
  readonly onInterrupt: OnInterrupt
  /** What the attempt shows about a quarantined task. */
  readonly survival?: Survival
}

const DEAD: Verdict = Object.freeze({ kind: 'dead' })
const CANCELLED: Verdict = Object.freeze({ kind: 'cancelled' })
const EXPIRED: Verdict = Object.freeze({ kind: 'expired' })
const REQUEUED: Verdict = Object.freeze({ kind: 'requeued', throttleMs: undefined })
const LOST: Verdict = Object.freeze({ kind: 'lost' })

/** Returns the verdict on the task. `now` is in milliseconds since 1970. */
export function decide(
  context: RetryContext,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: Random,
): Verdict {
  switch (outcome.kind) {
    case 'returned':
      return { kind: 'completed', output: outcome.output }
    case 'closed':
      return outcome.reason === 'lock_lost' ? LOST : afterInterrupt(context)
    case 'stopped':
      return outcome.reason === 'slot_stopped' ? afterInterrupt(context) : CANCELLED
    case 'snoozed':
      return { kind: 'snoozed', delayMs: outcome.delayMs }
    case 'rate_limited':
      return { kind: 'requeued', throttleMs: outcome.delayMs, throttled: outcome.of }
    case 'declared':
      return outcome.failure.retryable ? retry(context, policy, now, random, outcome.failure.retryAfterMs) : DEAD
    case 'unsupported':
      return context.uncounted < MAX_PASSED_ON
        ? { kind: 'snoozed', delayMs: passOnDelayMs(context.uncounted, random) }
        : retry(context, policy, now, random)
    case 'timed_out':
      if (outcome.reason === 'queue_timeout') return EXPIRED
      if (outcome.reason === 'total_timeout') return context.neverStarted ? EXPIRED : DEAD
      return retry(context, policy, now, random)
    case 'panicked':
      if (outcome.reason === 'poison') return DEAD
      if (outcome.reason === 'process_lost') return LOST
      // The pool decides whether the task has died too often when it fetches the task again.
      return context.survival === 'died' ? REQUEUED : retry(context, policy, now, random)
  }
}

/**
 * Returns whether the task is dead if its handler throws this now. If the delay of a retry is random, the shortest one counts. The
 * attempt of a handler whose signal has aborted has already ended.
 */
export function endsTask(
  {
    fetched,
    decoded,
    signal,
    clock,
  }: {
    readonly fetched: Pick<RetryContext, 'attempt' | 'maxAttempts'>
    readonly decoded: Pick<RetryContext, 'totalTimeoutAt'> & {
      readonly definition: Pick<TaskDefinition, 'name' | 'classify' | 'onInterrupt'>
      readonly retry: RetryPolicy
    }
    readonly signal: AbortSignal
    readonly clock: Pick<Clock, 'now'>
  },
  thrown: unknown,
): boolean {
  if (signal.aborted) return false
  const { attempt, maxAttempts } = fetched
  const { definition, retry, totalTimeoutAt } = decoded
  const { onInterrupt } = definition
  // A worker that calls a handler supports the task, so the number of uncounted attempts does not matter.
  const context = { attempt, maxAttempts, uncounted: 0, totalTimeoutAt, neverStarted: false, onInterrupt }
  return decide(context, outcomeOfError(thrown, definition), retry, clock.now(), () => 0).kind === 'dead'
}

/** Returns whether an attempt with this verdict uses up one of the attempts that the retry policy allows. */
export function countsAsAttempt({ kind }: Verdict): boolean {
  return kind !== 'requeued' && kind !== 'snoozed' && kind !== 'lost'
}

/**
 * How often a task is left to another worker, without counting the attempt, because a worker cannot run it. That takes about an hour, which
 * is longer than a rolling deploy. Then its attempts count, so that a task which no worker can run does not stay forever.
 */
const MAX_PASSED_ON = 150
const PASS_ON_MS = { first: 1_000, longest: 30_000 } as const

/** Returns for how long a task waits for another worker, in ms. */
function passOnDelayMs(uncounted: number, random: Random): number {
  const delayMs = Math.min(PASS_ON_MS.first * 2 ** uncounted, PASS_ON_MS.longest)
  return Math.round(delayMs * (0.5 + random() / 2))
}

function afterInterrupt({ onInterrupt }: RetryContext): Verdict {
  return onInterrupt === 'fail' ? DEAD : REQUEUED
}

function retry(
  { attempt, maxAttempts, totalTimeoutAt }: RetryContext,
  policy: RetryPolicy,
  now: number,
  random: Random,
  retryAfterMs = 0,
): Verdict {
  if (attempt >= maxAttempts) return DEAD
  const delayMs = Math.max(backoffMs(attempt, policy.backoff, random), retryAfterMs)
  // If the total timeout expires before the next attempt could start, waiting for that attempt would be pointless.
  if (totalTimeoutAt !== 'none' && now + delayMs >= totalTimeoutAt) return DEAD
  return { kind: 'retrying', delayMs }
}
