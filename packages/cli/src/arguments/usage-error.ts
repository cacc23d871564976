/** The error for an invalid command line. It is thrown before any request is sent and printed without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
