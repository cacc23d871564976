// The error for a command line that can't be carried out.

/** Told as it is, without a stack trace; nothing was asked of the API. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
