// Which attempt the running code belongs to, kept by Node's async context.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AsyncContext, Attempt } from '@bullpen/engine'

/**
 * Handlers run in a context that holds their attempt and nothing of the code that fetched it. Node copies a context for
 * each value that enters it: from a fixed one outside that is one copy a task, where `storage.run` makes two.
 */
export function attemptContext(): AsyncContext {
  const storage = new AsyncLocalStorage<Attempt>()
  const outside = AsyncLocalStorage.snapshot()
  const enter = <T>(attempt: Attempt, code: (attempt: Attempt) => T): T => {
    storage.enterWith(attempt)
    return code(attempt)
  }
  return { run: (attempt, code) => outside(enter, attempt, code) as never, current: () => storage.getStore() }
}
