/** Why the demo ended without a complete list: printed without a stack trace, exit code 1. */
export class DemoError extends Error {
  override readonly name = 'DemoError'
}
