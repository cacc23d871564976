/** An invalid command line. Printed without a stack trace; no request was sent. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
