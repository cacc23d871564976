// Decides whether this process leads its namespace, and when it next asks for the lease. Pure: the time and a random number are
// passed in.
import type { Transitions } from '@bullpen/engine/internal'
import type { LeaseAnswer } from './lease-calls.ts'

export type LeadershipState = 'follower' | 'leader' | 'closed'

/**
 * - `follower` → `leader`: Redis has granted the lease.
 * - `leader` → `follower`: another process has the lease, or the lease may have expired because Redis did not respond in time.
 * - `closed` is final.
 */
export const LEADERSHIP_TRANSITIONS: Transitions<LeadershipState> = {
  follower: ['follower', 'leader', 'closed'],
  leader: ['leader', 'follower', 'closed'],
  closed: [],
}

/** Times are in ms, on the monotonic clock. */
export type Leadership =
  | { readonly state: 'follower'; readonly askAt: number }
  | {
      readonly state: 'leader'
      readonly fencing: number
      /** The lease does not expire before this time. */
      readonly until: number
      readonly askAt: number
    }
  | { readonly state: 'closed' }

export interface LeaseTimes {
  /** How long a lease lasts unless it is renewed, in ms. At most 3,000. */
  readonly leaseMs: number
  /** How often the leader renews it, in ms. */
  readonly renewMs: number
}

/** The delay before asking for the lease again if there was no response, in ms. */
export const RETRY_MS = 200
/**
 * Each follower asks at a random moment within this time after the lease has expired, in ms, so that followers do not all ask at
 * once.
 */
export const SPREAD_MS = 100

export interface Asked {
  /** Undefined if Redis did not respond, or if this process did not ask because its clock has not been measured. */
  readonly answer: LeaseAnswer | undefined
  /** When the request was sent, and the current time. */
  readonly sentAt: number
  readonly now: number
  /** From 0 to 1. */
  readonly random: number
}

/**
 * Returns the leadership after a response to a request for the lease. A follower asks again when the lease that it last saw would
 * expire. As long as the leader renews its lease, each follower therefore asks about once every `leaseMs - renewMs`.
 */
export function afterAsking(before: Leadership, asked: Asked, { leaseMs, renewMs }: LeaseTimes): Leadership {
  if (before.state === 'closed') return before
  const { answer, sentAt, now, random } = asked
  if (answer === undefined) {
    if (before.state === 'leader' && now < before.until) return { ...before, askAt: now + RETRY_MS }
    return { state: 'follower', askAt: now + RETRY_MS }
  }
  if (answer.fencing === 0) return { state: 'follower', askAt: now + answer.leftMs + random * SPREAD_MS }
  // The lease began when the request reached Redis, which was after the request was sent.
  return { state: 'leader', fencing: answer.fencing, until: sentAt + leaseMs, askAt: sentAt + renewMs }
}
