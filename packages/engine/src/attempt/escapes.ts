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
 * `unattributed`: nobody knows whose it is, so nobody knows what is broken: the worker is to drain hard and end.
 */
export type UncaughtFate = 'charged' | 'late' | 'unattributed'

/** Call it from the worker's uncaughtException and unhandledRejection, where the async context is still the thrower's. */
export function attributeUncaught(error: unknown, context: AsyncContext): UncaughtFate {
  const attempt = context.current()
  if (attempt === undefined) return 'unattributed'
  return attempt.attributeUncaught(error) ? 'charged' : 'late'
}
