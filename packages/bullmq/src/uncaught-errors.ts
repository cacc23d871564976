// For plain BullMQ processors: attributes each error that escapes a handler's promise to the attempt whose code threw it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AsyncContext, type Attempt, attributeUncaught, type UncaughtFate } from '@bullpen/engine/internal'

const storage = new AsyncLocalStorage<Attempt>()

/**
 * The async context that all processors in this process share. They share it because Node reports uncaught errors per process and
 * not per processor. Unlike a pool's context, it preserves whatever your Worker has stored in the async context, such as a trace.
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
