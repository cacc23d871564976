// Which attempt the running code belongs to, kept by Node's async context.
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { Attempt } from '../attempt/attempt.ts'
import type { AsyncContext } from '../attempt/uncaught.ts'

/**
 * Handlers run in a context that holds their attempt, and of the code that fetched it nothing but what was there when this was
 * made. Node copies a context for each value that enters it, which is the dearest part of a short task: from a fixed one
 * outside that is one copy, where `storage.run` makes two.
 */
export function attemptContext(): AsyncContext {
  const storage = new AsyncLocalStorage<Attempt>()
  const outside = new AsyncResource('BullpenAttempts')
  const enter = <T>(attempt: Attempt, code: (attempt: Attempt) => T): T => {
    storage.enterWith(attempt)
    return code(attempt)
  }
  return {
    // The types forget that `enter` returns what its own argument does.
    run: (attempt, code) => outside.runInAsyncScope(enter, undefined, attempt, code) as ReturnType<typeof code>,
    current: () => storage.getStore(),
  }
}
