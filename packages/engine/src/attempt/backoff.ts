// Computes the delay before a retry from the definition's backoff.
import type { Backoff } from '@bullpen/contract'
import type { Random } from '../ports/clock.ts'

/**
 * Returns the delay, in milliseconds, between a failed attempt and the next one: the policy's delay, plus or minus the jitter.
 * `attempt` is the failed attempt's number, starting from 1. The result is never negative, and exceeds the policy's longest delay
 * by at most the jitter.
 */
export function backoffMs(attempt: number, backoff: Backoff, random: Random): number {
  return Math.round(delayMs(attempt, backoff) * (1 + backoff.jitter * (2 * random() - 1)))
}

function delayMs(attempt: number, backoff: Backoff): number {
  switch (backoff.type) {
    case 'exponential':
      return Math.min(backoff.initialMs * backoff.factor ** (attempt - 1), backoff.maxMs)
    case 'linear':
      return Math.min(backoff.initialMs * attempt, backoff.maxMs)
    case 'fixed':
      return backoff.initialMs
    case 'list':
      return backoff.delaysMs[Math.min(attempt, backoff.delaysMs.length) - 1] ?? 0
  }
}
