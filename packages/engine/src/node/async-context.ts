// Tracks which attempt the running code belongs to, using Node's async context.
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { Attempt } from '../attempt/attempt.ts'
import type { AsyncContext } from '../attempt/uncaught.ts'

/**
 * Creates the async context in which handlers run. A handler sees its own attempt and the async-local values that were set when
 * `attemptContext` was called, but none that the code that fetched the task has set. Node copies all async-local values whenever
 * one is added, and this copy is the most expensive part of a short task. Entering from a fixed outer context requires one copy,
 * whereas `storage.run` requires two.
 */
export function attemptContext(): AsyncContext {
  const storage = new AsyncLocalStorage<Attempt>()
  const outside = new AsyncResource('BullpenAttempts')
  const enter = <T>(attempt: Attempt, code: (attempt: Attempt) => T): T => {
    storage.enterWith(attempt)
    return code(attempt)
  }
  return {
    // The types do not express that `enter` returns what `code` returns.
    run: (attempt, code) => outside.runInAsyncScope(enter, undefined, attempt, code) as ReturnType<typeof code>,
    current: () => storage.getStore(),
  }
}
