// Computes the delay before a retry from the definition's backoff.
import type { Backoff } from '@bullpen/contract'
import type { Random } from '../ports/clock.ts'

/** The shortest delay, in ms. A task that fails never returns to the head of its queue at once. */
const SHORTEST_MS = 1

/**
 * Returns the delay, in milliseconds, between a failed attempt and the next one: the policy's delay, varied by the jitter.
 * `attempt` is the failed attempt's number, starting from 1. The result is at least 1. It exceeds the policy's longest delay by at
 * most the jitter, and with full jitter not at all.
 */
export function backoffMs(attempt: number, backoff: Backoff, random: Random): number {
  const { jitter } = backoff
  const factor = jitter === 'full' ? random() : 1 + jitter * (2 * random() - 1)
  return Math.max(SHORTEST_MS, Math.round(delayMs(attempt, backoff) * factor))
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
