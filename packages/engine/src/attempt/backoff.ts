// How long a failed task waits: exponential, capped, with jitter (row J3 of the seeds).
import type { RetryPolicy } from '@bullpen/contract'
import type { Random } from '../ports/ports.ts'

/**
 * Milliseconds before the attempt after `attempt` (from 1): min(base × 2^(attempt-1), max), plus or minus the jitter.
 * Never negative; above `maxMs` only by the jitter.
 */
export function backoffMs(attempt: number, policy: RetryPolicy, random: Random): number {
  const plain = Math.min(policy.baseMs * 2 ** (attempt - 1), policy.maxMs)
  return Math.round(plain * (1 + policy.jitter * (2 * random() - 1)))
}
