// Converts a handler's error to an outcome, and an outcome to the attempt's final state and message. A failure that is declared
// with a TaskError is retryable unless the TaskError says otherwise.
import {
  type AttemptEndState,
  type Classifier,
  type Duration,
  type EndReason,
  formatDuration,
  milliseconds,
  type TaskDefinition,
  TaskError,
} from '@bullpen/contract'
import { declareFailure, RateLimited } from '@bullpen/contract/isolate'
import type { CloseReason, Outcome } from '../ports/attempt-result.ts'
import { classifyByDefault } from './classifier.ts'
import { errorOf, messageOf, readable } from './thrown.ts'

/** The error that `ctx.snooze` throws to leave the handler. A snooze is not a failure: the task runs again later. */
export class Snooze extends Error {
  override readonly name = 'Snooze'
  readonly delayMs: number

  /** @throws BullpenError `invalid_duration`. */
  constructor(delay: Duration) {
    const delayMs = milliseconds(delay, 'the delay of snooze')
    super(`the handler snoozed the task for ${formatDuration(delayMs)}`)
    this.delayMs = delayMs
  }
}

/**
 * The abort reason of `ctx.poolSignal`. A handler that throws this error has obeyed the signal, so its attempt counts as closed
 * rather than failed.
 */
export class PoolEnded extends Error {
  override readonly name = 'AbortError'
  readonly reason: CloseReason

  constructor(reason: CloseReason) {
    super(`the pool is ending: ${reason}`)
    this.reason = reason
  }
}

/** How the attempt ended, in the form that is stored and reported. */
export interface OutcomeDetails {
  readonly state: AttemptEndState
  readonly reason?: EndReason
  /** The declared failure's own code. */
  readonly code?: string
  readonly message?: string
  /** Who cancelled the task. */
  readonly by?: string | undefined
  /** The value that was thrown. */
  readonly error?: unknown
}

const SUCCESS: OutcomeDetails = Object.freeze({ state: 'DONE_SUCCESS' })

const TIMEOUTS = {
  run_timeout: 'run timeout',
  heartbeat_timeout: 'heartbeat timeout',
  queue_timeout: 'queue timeout',
  total_timeout: 'total timeout',
} as const satisfies Readonly<Record<EndReason<'TERMINATED_TIMEOUT'>, string>>

const CLOSED = {
  drain: 'the attempt was interrupted by a drain',
  parent_closed: "the attempt was interrupted because its pool's parent signal aborted",
  lock_lost: 'the attempt lost the lock on its task',
} as const satisfies Readonly<Record<CloseReason, string>>

const STOPPED = {
  cancelled: 'the task was cancelled',
  queue_shutdown: "the task's queue was shut down",
  slot_stopped: 'the slot was stopped',
} as const satisfies Readonly<Record<EndReason<'TERMINATED_STOP_SIGNAL'>, string>>

export function describeOutcome(outcome: Outcome): OutcomeDetails {
  switch (outcome.kind) {
    case 'returned':
      return SUCCESS
    case 'declared': {
      const { failure, error } = outcome
      return { state: 'DONE_ERROR', code: failure.code, message: shortMessage(error), error }
    }
    case 'unsupported': {
      const { code, error } = outcome
      return { state: 'DONE_ERROR', code, message: shortMessage(error), error }
    }
    case 'panicked': {
      const { error, reason } = outcome
      return { state: 'RECOVER_ERR', reason, message: shortMessage(error, 'with its name'), error }
    }
    case 'timed_out': {
      const { reason, limitMs } = outcome
      return {
        state: 'TERMINATED_TIMEOUT',
        reason,
        message: `the ${TIMEOUTS[reason]} of ${formatDuration(limitMs)} expired`,
      }
    }
    case 'closed': {
      const { reason } = outcome
      return { state: 'TERMINATED_CTX_CLOSED', reason, message: CLOSED[reason] }
    }
    case 'stopped': {
      const { reason, by } = outcome
      return { state: 'TERMINATED_STOP_SIGNAL', reason, message: STOPPED[reason], by }
    }
    case 'snoozed': {
      const message = `the handler snoozed the task for ${formatDuration(outcome.delayMs)}`
      return { state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed', message }
    }
    case 'rate_limited': {
      const throttled = outcome.of === 'queue' ? 'queue' : 'concurrency key'
      const message = `the handler throttled the ${throttled} for ${formatDuration(outcome.delayMs)}`
      return { state: 'TERMINATED_CTX_CLOSED', reason: 'rate_limited', message }
    }
  }
}

/** Returns the outcome for a failure that was declared by throwing a TaskError. */
export function declaredFailure(error: TaskError): Outcome {
  const { code, retryable, retryAfterMs } = error
  return { kind: 'declared', failure: { code, retryable, retryAfterMs }, error }
}

/**
 * Returns the outcome for a value that a handler threw: a declared failure, a failure that the definition's classifier or the
 * default one recognises, or a panic. Throwing a value that is not an Error is also a panic.
 */
export function outcomeOfThrow(value: unknown, classify: Classifier | undefined): Outcome {
  const thrown = readable(value)
  if (thrown instanceof TaskError) return declaredFailure(thrown)
  if (thrown instanceof Snooze) return { kind: 'snoozed', delayMs: thrown.delayMs }
  if (thrown instanceof PoolEnded) return { kind: 'closed', reason: thrown.reason }
  if (thrown instanceof RateLimited) return { kind: 'rate_limited', delayMs: thrown.delayMs, of: thrown.of }
  const failure = classify?.(thrown) ?? classifyByDefault(thrown)
  if (failure !== undefined && failure !== 'panic') {
    return { kind: 'declared', failure: declareFailure(failure), error: errorOf(thrown) }
  }
  return { kind: 'panicked', reason: 'unexpected_error', error: errorOf(thrown) }
}

/** The same for the handler of a definition, whose classifier may throw as well. */
export function outcomeOfError(
  thrown: unknown,
  { name, classify }: Pick<TaskDefinition, 'name' | 'classify'>,
): Outcome {
  try {
    return outcomeOfThrow(thrown, classify)
  } catch (cause) {
    const error = new Error(`the classifier of ${name} threw: ${messageOf(cause)}`, { cause: readable(cause) })
    return { kind: 'panicked', reason: 'unexpected_error', error }
  }
}

/** Returns the outcome for an uncaught error, which was thrown in a timer, an event listener or a promise that is not awaited. */
export function uncaughtOutcome(thrown: unknown): Outcome & { kind: 'panicked' } {
  return { kind: 'panicked', reason: 'escaped_error', error: errorOf(thrown) }
}

/** The maximum number of characters that are stored of an error message. A task stores up to ten messages. */
const MAX_MESSAGE_LENGTH = 2_000

/** Returns the error's message, truncated if it is long. */
function shortMessage(given: Error, name?: 'with its name'): string {
  const error = errorOf(given)
  const message = name === undefined ? `${error.message}` : `${error.name}: ${error.message}`
  return message.length <= MAX_MESSAGE_LENGTH
    ? message
    : `${message.slice(0, MAX_MESSAGE_LENGTH)}… (${message.length} characters)`
}
