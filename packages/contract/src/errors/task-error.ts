// The failure that a handler declares: expected, coded, and marked as worth another try or not.
import { type Duration, milliseconds } from '../definition/duration.ts'

interface TaskErrorOptions {
  /** Whether another attempt can succeed. Default: true. */
  readonly retryable?: boolean
  /** The earliest time for the next attempt, from now; it replaces a shorter backoff. Only with `retryable`. */
  readonly retryAfter?: Duration
  readonly cause?: unknown
}

const CODE = /^[a-z][a-z0-9_]{0,63}$/

/**
 * Thrown by a handler to declare a failure. The attempt ends as DONE_ERROR; anything else that a handler throws is a
 * panic and ends as RECOVER_ERR. `code` is yours: lower case, digits and underscores, at most 64 characters.
 *
 * @example throw new TaskError('card_declined', 'the bank said no', { retryable: false })
 */
export class TaskError extends Error {
  override readonly name = 'TaskError'
  readonly code: string
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(code: string, message: string, options: TaskErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    if (typeof code !== 'string' || !CODE.test(code)) {
      throw new RangeError(`a TaskError's code matches ${CODE.source}; got ${JSON.stringify(code)}`)
    }
    this.code = code
    this.retryable = options.retryable ?? true
    if (options.retryAfter !== undefined && !this.retryable) {
      throw new RangeError(`TaskError ${code} is not retryable, so retryAfter has no meaning`)
    }
    this.retryAfterMs = options.retryAfter === undefined ? undefined : milliseconds(options.retryAfter, 'retryAfter')
  }
}
