// A failure that a handler declares: expected, with a code, and either retryable or permanent.
import { type Duration, milliseconds } from '../definition/duration.ts'

interface TaskErrorOptions {
  /** Whether another attempt can succeed. Default: true. */
  readonly retryable?: boolean
  /** Time until the earliest next attempt; replaces a shorter backoff. Only for a retryable failure. */
  readonly retryAfter?: Duration
  readonly cause?: unknown
}

const CODE = /^[a-z][a-z0-9_]{0,63}$/

/**
 * Thrown by a handler to declare a failure: the attempt ends as failed (DONE_ERROR). An undeclared error is a panic
 * (RECOVER_ERR). Choose your own `code`: lower-case letters, digits and underscores, at most 64 characters.
 *
 * @throws RangeError for an invalid code, or for `retryAfter` on a failure that is not retryable.
 * @throws BullpenError `invalid_duration`.
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
      throw new RangeError(
        `the code of a TaskError is ${JSON.stringify(code)}; expected up to 64 lower-case letters, digits and underscores, beginning with a letter, such as "card_declined"`,
      )
    }
    this.code = code
    this.retryable = options.retryable ?? true
    if (options.retryAfter !== undefined && !this.retryable) {
      throw new RangeError(`TaskError ${code} has retryAfter and retryable: false; remove one of them`)
    }
    this.retryAfterMs = options.retryAfter === undefined ? undefined : milliseconds(options.retryAfter, 'retryAfter')
  }
}
