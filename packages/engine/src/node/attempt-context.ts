// Knows which attempt the running code belongs to, through Node's async context.
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { Attempt } from '../attempt/attempt.ts'
import type { AsyncContext } from '../attempt/uncaught.ts'

/**
 * Handlers run in a context that holds their attempt and, of the fetching code's context, only what existed when this was
 * created. Node copies the context for each value that enters it, which is the most expensive part of a short task. Entering
 * from a fixed outer context needs one copy; `storage.run` needs two.
 */
export function attemptContext(): AsyncContext {
  const storage = new AsyncLocalStorage<Attempt>()
  const outside = new AsyncResource('BullpenAttempts')
  const enter = <T>(attempt: Attempt, code: (attempt: Attempt) => T): T => {
    storage.enterWith(attempt)
    return code(attempt)
  }
  return {
    // The types lose that `enter` returns what `code` returns.
    run: (attempt, code) => outside.runInAsyncScope(enter, undefined, attempt, code) as ReturnType<typeof code>,
    current: () => storage.getStore(),
  }
}
