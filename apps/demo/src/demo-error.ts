// What ended the demo before its list was whole; told without a stack trace, and the exit code is 1.

export class DemoError extends Error {
  override readonly name = 'DemoError'
}
