// Errors that escape a handler's promise: found again through the async context, and charged to their own attempt.
import type { Attempt } from './attempt.ts'

/** Remembers which attempt the code that runs now belongs to, over every await, timer and event that it causes. */
export interface AsyncContext {
  /** Calls `code` with the attempt, so that nobody makes a closure for each task. */
  run<T>(attempt: Attempt, code: (attempt: Attempt) => T): T
  current(): Attempt | undefined
}

/**
 * `charged`: the attempt ends as RECOVER_ERR (escaped_error). `late`: it had ended already, and nothing changes.
 * `unattributed`: nobody knows whose it is, so nobody knows what is broken: the process is to drain hard and end.
 */
export type EscapeFate = 'charged' | 'late' | 'unattributed'

/** Call it from the process's uncaughtException and unhandledRejection, where the async context is still the thrower's. */
export function chargeEscape(error: unknown, context: AsyncContext): EscapeFate {
  const attempt = context.current()
  if (attempt === undefined) return 'unattributed'
  return attempt.escape(error) ? 'charged' : 'late'
}
