// For plain BullMQ processors: attributes each error that escapes a handler's promise to the attempt whose code threw it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AsyncContext, type Attempt, attributeUncaught, type UncaughtFate } from '@bullpen/engine/internal'

const storage = new AsyncLocalStorage<Attempt>()

/**
 * The async context that all of this process's processors share, because a process has a single stream of uncaught errors. Unlike
 * a pool's context, it keeps whatever else your Worker stores in the async context, such as a trace.
 */
export const attemptContext: AsyncContext = {
  run: (attempt, code) => storage.run(attempt, code, attempt),
  current: () => storage.getStore(),
}

/**
 * Attributes an uncaught error to the attempt that it escaped from, whichever processor runs that attempt. Call this function on
 * `uncaughtException` and `unhandledRejection`. If it returns `unattributed`, the error did not come from a handler; close your
 * Workers and exit.
 */
export function escaped(error: unknown): UncaughtFate {
  return attributeUncaught(error, attemptContext)
}
