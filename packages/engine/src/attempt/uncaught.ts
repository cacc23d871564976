// Attributes uncaught errors to the attempt whose code threw them, using the async context.
import type { Attempt } from './attempt.ts'

/** Tracks which attempt the running code belongs to, across every await, timer and event that the code causes. */
export interface AsyncContext {
  /**
   * Calls `code` in the attempt's context. The attempt is passed as an argument, so that a closure is not needed for each task.
   */
  run<T>(attempt: Attempt, code: (attempt: Attempt) => T): T
  current(): Attempt | undefined
}

/**
 * `attributed` means that the attempt ends as RECOVER_ERR (escaped_error). `late` means that the attempt had already ended, so
 * nothing changes. `unattributed` means that the error does not belong to an attempt. Because anything in the process may be
 * broken, the worker must then drain hard and exit.
 */
export type UncaughtFate = 'attributed' | 'late' | 'unattributed'

/**
 * Attributes an uncaught error to the attempt whose code threw it. Call this function from the process's uncaughtException and
 * unhandledRejection events, where the async context is still that of the code that threw.
 */
export function attributeUncaught(error: unknown, context: AsyncContext): UncaughtFate {
  const attempt = context.current()
  if (attempt === undefined) return 'unattributed'
  return attempt.attributeUncaught(error) ? 'attributed' : 'late'
}
