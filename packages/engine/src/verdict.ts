// The verdict: what follows for the task when an attempt has ended. Decided here and nowhere else.
import type { RetryPolicy } from '@bullpen/contract'
import { backoffMs } from './backoff.ts'
import type { Outcome } from './outcome.ts'
import type { Random } from './ports.ts'

export type Verdict =
  | { readonly kind: 'completed'; readonly output: unknown }
  /** Waits its backoff in Redis and holds no worker. */
  | { readonly kind: 'retrying'; readonly delayMs: number }
  /** To the dead-letter list, with its last error. */
  | { readonly kind: 'dead' }
  /** Back to the head of the queue; no attempt used. */
  | { readonly kind: 'handed_back' }

/** Which attempt it was, from 1, of how many, and how long the task may live. */
export interface AttemptCount {
  readonly attempt: number
  readonly maxAttempts: number
  /** Milliseconds since 1970. */
  readonly deadlineAt: number | 'none'
}

const DEAD: Verdict = Object.freeze({ kind: 'dead' })
const HANDED_BACK: Verdict = Object.freeze({ kind: 'handed_back' })

export function decide(
  count: AttemptCount,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: Random,
): Verdict {
  switch (outcome.kind) {
    case 'returned':
      return { kind: 'completed', output: outcome.output }
    case 'closed':
      return HANDED_BACK
    case 'declared':
      return outcome.failure.retryable ? again(count, policy, now, random, outcome.failure.retryAfterMs) : DEAD
    case 'panicked':
    case 'timed_out':
      return again(count, policy, now, random)
  }
}

function again(count: AttemptCount, policy: RetryPolicy, now: number, random: Random, atLeastMs = 0): Verdict {
  if (count.attempt >= count.maxAttempts) return DEAD
  const delayMs = Math.max(backoffMs(count.attempt, policy, random), atLeastMs)
  // A task whose life ends before its next attempt begins is dead now, not after an idle wait.
  if (count.deadlineAt !== 'none' && now + delayMs >= count.deadlineAt) return DEAD
  return { kind: 'retrying', delayMs }
}
