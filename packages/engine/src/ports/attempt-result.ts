// Defines how an attempt can end and what happens to its task. The runner returns these types, consumers commit them, and
// isolators report them.
import type {
  AttemptRecord,
  BreakerSettings,
  CancelReason,
  EndReason,
  RetryBudget,
  TaskEvent,
  Throttled,
} from '@bullpen/contract'
import type { DeclaredFailure } from '@bullpen/contract/internal'
import type { Survival } from '../quarantine/decision.ts'

/** Why the context of a running attempt was closed from the outside. */
export type CloseReason = Exclude<EndReason<'TERMINATED_CTX_CLOSED'>, 'snoozed' | 'rate_limited'>

/** Why an attempt was stopped from the outside, and by whom, if known. */
export interface StopCause {
  readonly reason: EndReason<'TERMINATED_STOP_SIGNAL'>
  readonly by?: string | undefined
}

/** The cause of a stop that cancels the task. */
export interface CancelCause extends StopCause {
  readonly reason: CancelReason
}

/** What a handler did, or what interrupted it. Everything that can happen becomes one of these outcomes. */
export type Outcome =
  /** The handler returned an output that the contract accepts. */
  | { readonly kind: 'returned'; readonly output: unknown }
  /** The handler threw a declared failure, or the runner declared one on its behalf. */
  | { readonly kind: 'declared'; readonly failure: DeclaredFailure; readonly error: Error }
  /** This worker cannot run the task, but another one may: one with a newer catalogue or with the codec. No handler was started. */
  | { readonly kind: 'unsupported'; readonly code: string; readonly error: Error }
  /** The attempt failed in a way that was not declared. */
  | { readonly kind: 'panicked'; readonly reason: EndReason<'RECOVER_ERR'>; readonly error: Error }
  /** A timeout of `limitMs` expired. */
  | { readonly kind: 'timed_out'; readonly reason: EndReason<'TERMINATED_TIMEOUT'>; readonly limitMs: number }
  /** The attempt's context was closed before the handler ended. */
  | { readonly kind: 'closed'; readonly reason: CloseReason }
  /** The task was cancelled, its queue shut down, or its slot stopped. */
  | ({ readonly kind: 'stopped' } & StopCause)
  /** The handler asked to be run again later. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** The handler asked for its queue or its concurrency key to be throttled. */
  | { readonly kind: 'rate_limited'; readonly delayMs: number; readonly of: Throttled }

/** What happens to the task after an attempt has ended. */
export type Verdict =
  | { readonly kind: 'completed'; readonly output: unknown }
  /** The task waits in the store for `delayMs`, or longer if its retry budget requires that, and occupies no slot. */
  | { readonly kind: 'retrying'; readonly delayMs: number }
  /** The task has no attempts left or failed permanently. */
  | { readonly kind: 'dead' }
  /** The task was ended by request, which is not a failure. */
  | { readonly kind: 'cancelled' }
  /** The task's queue timeout or total timeout expired before the first attempt. */
  | { readonly kind: 'expired' }
  /**
   * The task returns to the head of its queue, and the attempt does not count. The queue, or only the task's concurrency key if that
   * is `throttled`, does not start any tasks for `throttleMs`. A quarantined task that has ended its child process also returns.
   */
  | { readonly kind: 'requeued'; readonly throttleMs: number | undefined; readonly throttled?: Throttled }
  /** The task is scheduled again, and the attempt does not count. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** Another worker owns the task and decides what happens to it. */
  | { readonly kind: 'lost' }

/** The event to emit after the verdict has been carried out, or at once if there is nothing to carry out. */
export type EndEvent = Extract<TaskEvent, { readonly event: 'attempt.ended' | 'attempt.commit_refused' }>

/** What an attempt has shown about a service that its task depends on. */
export interface ServiceCall {
  readonly service: string
  readonly failed: boolean
  readonly slow: boolean
  /** The settings of the service's circuit breaker. */
  readonly settings: BreakerSettings
}

export interface AttemptResult {
  /** The event to emit when the consumer reports that the commit has settled; see `ConsumerHost.settled`. */
  readonly event: EndEvent
  readonly record: AttemptRecord
  readonly verdict: Verdict
  /** The value that was thrown. Its message and stack are stored with the task. */
  readonly error: unknown
  /** The budget within which the store retries tasks of this definition. Undefined if there is no limit. */
  readonly budget?: RetryBudget | undefined
  /** When the task's total timeout expires, in ms since 1970. The store does not hold a retry longer. Defaults to 'none'. */
  readonly totalTimeoutAt?: number | 'none'
  /**
   * What the attempt shows about a quarantined task. The consumer stores it in the script that carries out the verdict: `lived` ends
   * the quarantine, and `died` is one more death.
   */
  readonly survival?: Survival
  /** Set if the attempt has registered a compensation, or a follow-up of a failure or of any end. */
  readonly hasRegistered?: true
  /** The lines of the follow-ups that the attempt has added, if it completes the task. The store stores them with the end. */
  readonly followUps?: string
  /** What the attempt has shown about services. The store counts it in the script that carries out the verdict. */
  readonly calls?: readonly ServiceCall[]
}
