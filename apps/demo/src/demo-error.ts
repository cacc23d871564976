/** Reports why the demo ended without a complete list. The error is printed without a stack trace, and the exit code is 1. */
export class DemoError extends Error {
  override readonly name = 'DemoError'
}
