// The failure that a handler declares: expected, with a code, and marked as worth another attempt or not.
import type { Duration } from '../definition/duration.ts'
import { declareFailure } from './failure.ts'

interface TaskErrorOptions {
  /** Whether another attempt can succeed. Default: true. */
  readonly retryable?: boolean
  /** The shortest delay before the next attempt. It replaces a shorter backoff, and has no effect if not retryable. */
  readonly retryAfter?: Duration
  readonly cause?: unknown
}

/**
 * Thrown by a handler to declare an expected failure: the attempt has failed. Anything else that a handler throws, unless a
 * classifier recognises it, is a panic.
 *
 * `code` is your own: lower case, digits and underscores, at most 64 characters. The constructor never throws: it turns any
 * other text into such a code ('Card declined' becomes 'card_declined') and ignores a `retryAfter` that is not a duration.
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
