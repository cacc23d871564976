// Which attempt the running code belongs to, kept by Node's async context.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AsyncContext, Attempt } from '@bullpen/engine'

export function attemptContext(): AsyncContext {
  const storage = new AsyncLocalStorage<Attempt>()
  return { run: (attempt, code) => storage.run(attempt, code, attempt), current: () => storage.getStore() }
}
