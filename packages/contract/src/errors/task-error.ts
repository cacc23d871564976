// Defines the error with which a handler declares an expected failure. The error has a code and indicates whether another attempt
// can succeed.
import type { Duration } from '../definition/units/duration.ts'
import { declareFailure } from './failure.ts'

interface TaskErrorOptions {
  /** Whether another attempt can succeed. Defaults to true. */
  readonly retryable?: boolean
  /**
   * The shortest delay before the next attempt. If the backoff is shorter, this delay replaces it. It has no effect if the
   * failure is not retryable.
   */
  readonly retryAfter?: Duration
  readonly cause?: unknown
}

/**
 * Throw this error in a handler to declare that the attempt has failed for an expected reason. Anything else that a handler
 * throws is a panic, unless a classifier recognises it.
 *
 * Choose your own `code` of lower-case letters, digits and underscores, at most 64 characters. The constructor never throws. It
 * converts any other string to such a code ('Card declined' becomes 'card_declined') and ignores a `retryAfter` that is not a
 * valid duration.
 *
 * @example throw new TaskError('card_declined', 'the bank refused the charge', { retryable: false })
 */
export class TaskError extends Error {
  override readonly name = 'TaskError'
  readonly code: string
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(code: string, message: string, { retryable = true, retryAfter, cause }: TaskErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    const failure = declareFailure({ code, retryable, retryAfter })
    this.code = failure.code
    this.retryable = failure.retryable
    this.retryAfterMs = failure.retryAfterMs
  }
}
