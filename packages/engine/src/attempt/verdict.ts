// The verdict: what happens to the task after an attempt has ended. No other code decides this.
//
// A verdict depends only on the arguments of `decide`: how the attempt ended, how many attempts the retry policy still allows,
// when the task's total timeout passes, the time, and a random number. The runner calls `decide`, and consumers carry the verdict
// out.
import type { OnInterrupt, RetryPolicy } from '@bullpen/contract'
import type { Outcome, Verdict } from '../ports/attempt-result.ts'
import type { Random } from '../ports/clock.ts'
import { backoffMs } from './backoff.ts'

export interface RetryContext {
  /** The number of this attempt among the attempts that count, from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** When the total timeout passes, in ms since 1970. */
  readonly totalTimeoutAt: number | 'none'
  /** Whether no handler has ever been started for this task. */
  readonly neverStarted: boolean
  readonly onInterrupt: OnInterrupt
}

const DEAD: Verdict = Object.freeze({ kind: 'dead' })
const CANCELLED: Verdict = Object.freeze({ kind: 'cancelled' })
const EXPIRED: Verdict = Object.freeze({ kind: 'expired' })
const REQUEUED: Verdict = Object.freeze({ kind: 'requeued', throttleMs: undefined })
const LOST: Verdict = Object.freeze({ kind: 'lost' })

/** Decides the verdict. `now` is in milliseconds since 1970. */
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
      return { kind: 'requeued', throttleMs: outcome.delayMs }
    case 'declared':
      return outcome.failure.retryable ? retry(context, policy, now, random, outcome.failure.retryAfterMs) : DEAD
    case 'timed_out':
      if (outcome.reason === 'queue_timeout') return EXPIRED
      if (outcome.reason === 'total_timeout') return context.neverStarted ? EXPIRED : DEAD
      return retry(context, policy, now, random)
    case 'panicked':
      return retry(context, policy, now, random)
  }
}

/** Whether an attempt with this verdict uses up one of the attempts that the retry policy allows. */
export function countsAsAttempt({ kind }: Verdict): boolean {
  return kind !== 'requeued' && kind !== 'snoozed' && kind !== 'lost'
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
  // If the total timeout passes before the next attempt could start, waiting for it would be pointless.
  if (totalTimeoutAt !== 'none' && now + delayMs >= totalTimeoutAt) return DEAD
  return { kind: 'retrying', delayMs }
}
