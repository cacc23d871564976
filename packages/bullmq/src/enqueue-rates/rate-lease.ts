// Decides whether an API process may enqueue tasks within the rate of their API key, from the tokens that the process has leased.
// There is no I/O here.
//
// All API processes share one bucket of tokens for each API key, which is in Redis. A process takes some tokens at once and then
// spends them without asking Redis: as many as it needs now, and as many more as it would use within LEASE_MS at its present speed,
// which is at most what the rate gives within that time (`batchOf`). Redis gives at most half of what is left ahead of use. If a process
// gets fewer than it wanted, it does not ask again for LEASE_MS, so that a caller that exceeds its rate costs no further round trips.
//
// No more tokens are spent than Redis has granted. Over any window, Redis grants at most the bucket's size and what is refilled within
// the window. To that come the tokens that the processes held when the window began: at most one batch for each process. The overshoot
// is therefore at most one batch for each process, apart from requests that are waiting for Redis's reply at that time.
import type { EnqueueRate } from '@bullpen/contract'
import { msUntilTokens } from '@bullpen/engine/internal'
import type { LeaseReply } from '../scripts/enqueue-rates/lease-tokens.ts'

/** For how long a process takes tokens ahead of their use, in ms. If the rate's period is less than four times as long, a quarter of it. */
export const LEASE_MS = 250
/** When leased tokens lapse, in ms. */
export const LEASE_VALID_MS = 1_000

/** What a process knows about one API key. Times are in ms since any fixed time. */
export interface RateLease {
  /** The tokens that are left of those that were leased. */
  readonly held: number
  readonly leasedAt: number
  /** How many tokens were spent since then. */
  readonly spent: number
  /** How many tokens the bucket in Redis had left. It cannot have more by now than what was refilled since. */
  readonly left: number
  /** Until then, the process does not ask Redis again, because there were fewer tokens than it wanted. */
  readonly pausedUntil: number
}

/** The lease of a process that has not asked Redis yet. */
export const NO_LEASE: RateLease = {
  held: 0,
  leasedAt: Number.NEGATIVE_INFINITY,
  spent: 0,
  left: Number.POSITIVE_INFINITY,
  pausedUntil: Number.NEGATIVE_INFINITY,
}

/**
 * - `spend`: the process holds enough tokens
 * - `ask`: the process needs to ask Redis for tokens
 * - `refuse`: there are not enough tokens
 */
export type RateDecision =
  | { readonly kind: 'spend' | 'ask' }
  | { readonly kind: 'refuse'; readonly retryAfterMs: number }

function leaseMs({ perMs }: EnqueueRate): number {
  return Math.min(LEASE_MS, perMs / 4)
}

/** Returns the largest number of tokens that a process holds: what the rate gives within {@link LEASE_MS}, and at least one. */
export function batchOf(rate: EnqueueRate): number {
  return Math.max(1, Math.floor((rate.max * leaseMs(rate)) / rate.perMs))
}

function heldTokens({ held, leasedAt }: RateLease, now: number): number {
  return now - leasedAt < LEASE_VALID_MS ? held : 0
}

export function decideOnRate(lease: RateLease, tasks: number, now: number, rate: EnqueueRate): RateDecision {
  const held = heldTokens(lease, now)
  if (held >= tasks) return { kind: 'spend' }
  if (now >= lease.pausedUntil) return { kind: 'ask' }
  const refilled = ((now - lease.leasedAt) * rate.max) / rate.perMs
  const refilledInMs = msUntilTokens(lease.left + refilled + held, tasks, rate)
  return { kind: 'refuse', retryAfterMs: Math.max(lease.pausedUntil - now, refilledInMs) }
}

export function afterSpending(lease: RateLease, tasks: number): RateLease {
  return { ...lease, held: lease.held - tasks, spent: lease.spent + tasks }
}

/** What a process asks Redis for (../scripts/enqueue-rates/lease-tokens.ts). */
export interface WantedTokens {
  readonly needed: number
  readonly least: number
  readonly ahead: number
}

/** Returns what to ask Redis for if the waiting requests have this many tasks, each of them at most a batch. */
export function wantedTokens(lease: RateLease, waiting: number, now: number, rate: EnqueueRate): WantedTokens {
  const sinceMs = Math.max(1, now - lease.leasedAt)
  const soon = Math.floor((lease.spent * leaseMs(rate)) / sinceMs)
  const needed = waiting - heldTokens(lease, now)
  // A batch of one token would never be used up by requests that come one at a time.
  const ahead = batchOf(rate) === 1 ? 0 : Math.min(batchOf(rate), soon)
  return { needed, least: 1, ahead }
}

export function afterReply(
  lease: RateLease,
  { granted, left }: LeaseReply,
  { needed, ahead }: WantedTokens,
  now: number,
  rate: EnqueueRate,
): RateLease {
  const pauseMs = granted < needed + ahead ? leaseMs(rate) : 0
  return { held: heldTokens(lease, now) + granted, leasedAt: now, spent: 0, left, pausedUntil: now + pauseMs }
}
