// Uncaught errors: found through the async context and attributed to the attempt whose code threw them.
import type { Attempt } from './attempt.ts'

/** Knows which attempt the running code belongs to, across every await, timer and event that it causes. */
export interface AsyncContext {
  /** Calls `code` with the attempt, which saves a closure for each task. */
  run<T>(attempt: Attempt, code: (attempt: Attempt) => T): T
  current(): Attempt | undefined
}

/**
 * `charged`: the attempt ends as RECOVER_ERR (escaped_error). `late`: it had ended already, and nothing changes.
 * `unattributed`: the error belongs to no attempt, so anything may be broken: the worker must drain hard and exit.
 */
export type UncaughtFate = 'charged' | 'late' | 'unattributed'

/** Call it from the process's uncaughtException and unhandledRejection, where the async context is still the thrower's. */
export function attributeUncaught(error: unknown, context: AsyncContext): UncaughtFate {
  const attempt = context.current()
  if (attempt === undefined) return 'unattributed'
  return attempt.attributeUncaught(error) ? 'charged' : 'late'
}
