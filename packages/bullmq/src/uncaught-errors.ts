// Attributes each error that escapes a handler's promise to the attempt whose code threw the error, in plain BullMQ processors.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AsyncContext, type Attempt, attributeUncaught, type UncaughtFate } from '@bullpen/engine/internal'

const storage = new AsyncLocalStorage<Attempt>()

/**
 * Tracks the current attempt for all processors in this process. They share one tracker, because Node reports uncaught errors per
 * process and not per processor. Unlike in a pool, values that your Worker has stored with AsyncLocalStorage, such as a trace,
 * remain available to handlers.
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
