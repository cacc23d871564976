// The verdict: what follows for the task when an attempt has ended. Decided here and nowhere else.
import type { OnInterrupt, RetryPolicy } from '@bullpen/contract'
import type { Random } from '../ports/ports.ts'
import { backoffMs } from './backoff.ts'
import type { Outcome } from './outcome.ts'

export type Verdict =
  | { readonly kind: 'completed'; readonly output: unknown }
  /** Waits its backoff in Redis and holds no slot. */
  | { readonly kind: 'retrying'; readonly delayMs: number }
  /** To the dead-letter list, with its last error. */
  | { readonly kind: 'dead' }
  /** Final, and not a failure. */
  | { readonly kind: 'cancelled' }
  /** Waited too long; final, never started. */
  | { readonly kind: 'expired' }
  /** Back to the head of the queue; no attempt used. `holdMs`: for so long the queue starts nothing, in any worker. */
  | { readonly kind: 'requeued'; readonly throttleMs: number | undefined }
  /** Scheduled again; no attempt used. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** Nothing: whoever owns the task now decides. */
  | { readonly kind: 'lost' }

/** Which attempt it was, from 1, of how many, how long the task may live, and what its slot's end means for it. */
export interface RetryContext {
  readonly attempt: number
  readonly maxAttempts: number
  /** Milliseconds since 1970. */
  readonly deadlineAt: number | 'none'
  readonly onInterrupt: OnInterrupt
}

const DEAD: Verdict = Object.freeze({ kind: 'dead' })
const CANCELLED: Verdict = Object.freeze({ kind: 'cancelled' })
const EXPIRED: Verdict = Object.freeze({ kind: 'expired' })
const HANDED_BACK: Verdict = Object.freeze({ kind: 'requeued', throttleMs: undefined })
const LOST: Verdict = Object.freeze({ kind: 'lost' })

/** `now`: milliseconds since 1970. */
export function decide(
  count: RetryContext,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: Random,
): Verdict {
  switch (outcome.kind) {
    case 'returned':
      return { kind: 'completed', output: outcome.output }
    case 'closed':
      return outcome.reason === 'lock_lost' ? LOST : interrupted(count)
    case 'stopped':
      return outcome.reason === 'slot_stopped' ? interrupted(count) : CANCELLED
    case 'snoozed':
      return { kind: 'snoozed', delayMs: outcome.delayMs }
    case 'rate_limited':
      return { kind: 'requeued', throttleMs: outcome.delayMs }
    case 'declared':
      return outcome.failure.retryable ? again(count, policy, now, random, outcome.failure.retryAfterMs) : DEAD
    case 'timed_out':
      if (outcome.reason === 'queue_timeout') return EXPIRED
      return outcome.reason === 'total_timeout' ? DEAD : again(count, policy, now, random)
    case 'panicked':
      return again(count, policy, now, random)
  }
}

function interrupted({ onInterrupt }: RetryContext): Verdict {
  return onInterrupt === 'fail' ? DEAD : HANDED_BACK
}

function again(count: RetryContext, policy: RetryPolicy, now: number, random: Random, atLeastMs = 0): Verdict {
  if (count.attempt >= count.maxAttempts) return DEAD
  const delayMs = Math.max(backoffMs(count.attempt, policy.backoff, random), atLeastMs)
  // A task whose life ends before its next attempt begins is dead now, not after an idle wait.
  if (count.deadlineAt !== 'none' && now + delayMs >= count.deadlineAt) return DEAD
  return { kind: 'retrying', delayMs }
}
