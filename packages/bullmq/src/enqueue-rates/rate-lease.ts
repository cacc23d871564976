// Decides, from the tokens that an API process has leased, whether the process may enqueue tasks within the rate of their API
// key. This module does no I/O.
//
// For each API key, all API processes share one bucket of tokens in Redis. A process takes several tokens at once and then spends
// them without asking Redis. It takes as many as it needs now, and as many more as it would use within LEASE_MS at its present
// speed, but at most what the rate gives within that time (`batchOf`). Of the tokens that are left, Redis gives at most half
// ahead of their use. If a process receives fewer tokens than it wanted, it does not ask again for LEASE_MS, so that a caller
// that exceeds its rate does not cause further round trips.
//
// No more tokens are spent than Redis has granted. In any time window, Redis grants at most the bucket's size plus what is
// refilled during the window. In addition, each process may spend the tokens that it held when the window began, which are at
// most one batch. The rate is therefore exceeded by at most one batch for each process, apart from requests that are waiting for
// Redis's reply at that time.
import type { EnqueueRate } from '@bullpen/contract'
import { msUntilTokens } from '@bullpen/engine/internal'

/**
 * How far ahead of their use a process takes tokens, in ms. If a quarter of the rate's period is shorter, that time applies
 * instead.
 */
export const LEASE_MS = 250
/** How long leased tokens remain valid, in ms. */
export const LEASE_VALID_MS = 1_000

/** What a process knows about one API key. Times are in ms since any fixed time. */
export interface RateLease {
  /** The leased tokens that have not been spent. */
  readonly held: number
  readonly leasedAt: number
  /** How many tokens have been spent since then. */
  readonly spent: number
  /** How many tokens were left in Redis's bucket. Since then, the bucket can have gained no more than what was refilled. */
  readonly left: number
  /** The time until which the process does not ask Redis again, because there were fewer tokens than it wanted. */
  readonly pausedUntil: number
}

export interface LeaseReply {
  readonly granted: number
  /** How many tokens are left in Redis's bucket. */
  readonly left: number
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

/** The tokens for which a process asks Redis (lease-tokens.lua). */
export interface WantedTokens {
  readonly needed: number
  readonly least: number
  readonly ahead: number
}

/**
 * Returns the tokens to ask Redis for. `waiting` is the number of tasks in the waiting requests, each of which has at most a
 * batch.
 */
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
