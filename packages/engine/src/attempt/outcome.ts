// What came of running a handler, and the end state that it gives the attempt.
import {
  type AttemptEndState,
  type Classifier,
  type EndReason,
  type Failure,
  formatDuration,
  TaskError,
} from '@bullpen/contract'
import { RateLimited } from '@bullpen/contract/internal'
import type { CloseReason } from '../pool/slot.ts'
import { classifyByDefault } from './classifier.ts'
import { Snooze } from './snooze.ts'

/** A closed set: whatever a handler does becomes one of these. */
export type Outcome =
  /** Output that the contract accepts. */
  | { readonly kind: 'returned'; readonly output: unknown }
  /** A failure that the handler, or the runner on its behalf, declared. */
  | { readonly kind: 'declared'; readonly failure: Failure; readonly error: Error }
  /** The seeds' panic: anything undeclared. */
  | { readonly kind: 'panicked'; readonly reason: EndReason<'RECOVER_ERR'>; readonly error: Error }
  /** A time limit passed; `limitMs` is the one. */
  | { readonly kind: 'timed_out'; readonly reason: EndReason<'TERMINATED_TIMEOUT'>; readonly limitMs: number }
  /** The attempt's context was closed before it was done. */
  | { readonly kind: 'closed'; readonly reason: CloseReason }
  /** The task was cancelled, its queue shut down, or its slot stopped. */
  | { readonly kind: 'stopped'; readonly reason: EndReason<'TERMINATED_STOP_SIGNAL'> }
  /** The handler asked to be started again later. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** The handler asked that its queue be held, and this task with it. */
  | { readonly kind: 'rate_limited'; readonly delayMs: number }

/** How the attempt ended, in the words that are stored. */
export interface OutcomeDetails {
  readonly state: AttemptEndState
  readonly reason: EndReason | undefined
  /** The declared failure's own code. */
  readonly code: string | undefined
  readonly message: string | undefined
  /** For logs; never stored whole. */
  readonly error: unknown
}

const SUCCESS: OutcomeDetails = Object.freeze({
  state: 'DONE_SUCCESS',
  reason: undefined,
  code: undefined,
  message: undefined,
  error: undefined,
})

const STOPPED = {
  cancelled: 'the task was cancelled',
  queue_shutdown: 'its queue was shut down',
  slot_stopped: 'its slot was stopped',
} as const satisfies Readonly<Record<EndReason<'TERMINATED_STOP_SIGNAL'>, string>>

export function describeOutcome(outcome: Outcome): OutcomeDetails {
  switch (outcome.kind) {
    case 'returned':
      return SUCCESS
    case 'declared': {
      const { failure, error } = outcome
      return { state: 'DONE_ERROR', reason: undefined, code: failure.code, message: messageOf(error), error }
    }
    case 'panicked': {
      const { error, reason } = outcome
      return { state: 'RECOVER_ERR', reason, code: undefined, message: messageOf(error, 'with its name'), error }
    }
    case 'timed_out': {
      const message = `the ${outcome.reason} limit of ${outcome.limitMs} ms passed`
      return { state: 'TERMINATED_TIMEOUT', reason: outcome.reason, code: undefined, message, error: undefined }
    }
    case 'closed': {
      const message = `the attempt's context was closed: ${outcome.reason}`
      return { state: 'TERMINATED_CTX_CLOSED', reason: outcome.reason, code: undefined, message, error: undefined }
    }
    case 'stopped': {
      const message = STOPPED[outcome.reason]
      return { state: 'TERMINATED_STOP_SIGNAL', reason: outcome.reason, code: undefined, message, error: undefined }
    }
    case 'snoozed': {
      const message = `the handler asked to be started again in ${formatDuration(outcome.delayMs)}`
      return { state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', code: undefined, message, error: undefined }
    }
    case 'rate_limited': {
      const message = `the handler asked that its queue be held for ${formatDuration(outcome.delayMs)}`
      return { state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited', code: undefined, message, error: undefined }
    }
  }
}

/** A failure that was declared by throwing it. */
export function declaredFailure(error: TaskError): Outcome {
  const { code, retryable, retryAfterMs } = error
  return { kind: 'declared', failure: { code, retryable, retryAfterMs }, error }
}

/**
 * What a handler threw: a failure that it declared, one that the definition's classifier or else the default one names,
 * or a panic. Throwing something that is no Error is a panic too.
 */
export function outcomeOfThrow(thrown: unknown, classify: Classifier | undefined): Outcome {
  if (thrown instanceof TaskError) return declaredFailure(thrown)
  if (thrown instanceof Snooze) return { kind: 'snoozed', delayMs: thrown.delayMs }
  if (thrown instanceof RateLimited) return { kind: 'rate_limited', delayMs: thrown.delayMs }
  const failure = classify?.(thrown) ?? classifyByDefault(thrown)
  if (failure !== undefined && failure !== 'panic') return { kind: 'declared', failure, error: asError(thrown) }
  return { kind: 'panicked', reason: 'unexpected_error', error: asError(thrown) }
}

/** What escaped the handler's promise, by a timer, an event or a promise that nobody awaited. */
export function uncaughtOutcome(thrown: unknown): Outcome & { kind: 'panicked' } {
  return { kind: 'panicked', reason: 'escaped_error', error: asError(thrown) }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(`the handler threw ${describe(thrown)}, which is no Error`)
}

function describe(value: unknown): string {
  try {
    return String(JSON.stringify(value)).slice(0, 200)
  } catch {
    return typeof value
  }
}

/** What is stored of an error's message: the rest of a long one says little, and stands in Redis ten times. */
const MAX_MESSAGE_LENGTH = 2_000

/** An error may be anything, a Proxy or one whose getters throw: reading it must not fail the runner. */
function messageOf(error: Error, name?: 'with its name'): string {
  try {
    const message = name === undefined ? `${error.message}` : `${error.name}: ${error.message}`
    return message.length <= MAX_MESSAGE_LENGTH
      ? message
      : `${message.slice(0, MAX_MESSAGE_LENGTH)}… (${message.length} characters)`
  } catch (cause) {
    return `an error that can't be read: ${cause instanceof Error ? 'its own getters throw' : typeof cause}`
  }
}
