// How an attempt can end, and what follows for its task: what the runner returns, a consumer commits and an isolator reports.
import type { AttemptRecord, CancelReason, EndReason } from '@bullpen/contract'
import type { DeclaredFailure } from '@bullpen/contract/internal'

/** Why the context of a running attempt was closed from outside. */
export type CloseReason = Exclude<EndReason<'TERMINATED_CTX_CLOSED'>, 'snoozed' | 'rate_limited'>

/** Why an attempt was stopped from outside, and by whom when that is known. */
export interface StopCause {
  readonly reason: EndReason<'TERMINATED_STOP_SIGNAL'>
  readonly by?: string | undefined
}

/** A stop that ends the task: its cancellation. */
export interface CancelCause extends StopCause {
  readonly reason: CancelReason
}

/** What a handler did, or what was done to it. A closed set: everything that can happen becomes one of these. */
export type Outcome =
  /** It returned output that the contract accepts. */
  | { readonly kind: 'returned'; readonly output: unknown }
  /** It threw a declared failure, or the runner declared one on its behalf. */
  | { readonly kind: 'declared'; readonly failure: DeclaredFailure; readonly error: Error }
  /** Anything undeclared. */
  | { readonly kind: 'panicked'; readonly reason: EndReason<'RECOVER_ERR'>; readonly error: Error }
  /** A timeout of `limitMs` passed. */
  | { readonly kind: 'timed_out'; readonly reason: EndReason<'TERMINATED_TIMEOUT'>; readonly limitMs: number }
  /** The attempt's context was closed before the handler ended. */
  | { readonly kind: 'closed'; readonly reason: CloseReason }
  /** The task was cancelled, its queue shut down, or its slot stopped. */
  | ({ readonly kind: 'stopped' } & StopCause)
  /** It asked to be run again later. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** It asked for its queue to be throttled. */
  | { readonly kind: 'rate_limited'; readonly delayMs: number }

/** What follows for the task. */
export type Verdict =
  | { readonly kind: 'completed'; readonly output: unknown }
  /** Waits in the store for `delayMs` and holds no slot. */
  | { readonly kind: 'retrying'; readonly delayMs: number }
  /** No attempts left, or a permanent failure. */
  | { readonly kind: 'dead' }
  /** Ended by request; not a failure. */
  | { readonly kind: 'cancelled' }
  /** Passed its queue timeout, or its total timeout before the first attempt. */
  | { readonly kind: 'expired' }
  /** Back to the head of its queue; the attempt does not count. `throttleMs`: the queue starts nothing for this long. */
  | { readonly kind: 'requeued'; readonly throttleMs: number | undefined }
  /** Scheduled again; the attempt does not count. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** Nothing: another worker owns the task and decides. */
  | { readonly kind: 'lost' }

export interface AttemptResult {
  readonly record: AttemptRecord
  readonly verdict: Verdict
  /** What was thrown. Its message and stack are stored with the task. */
  readonly error: unknown
}
