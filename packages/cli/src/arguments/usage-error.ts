/** Reports an invalid command line. The error is printed without a stack trace, and no request has been sent. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
