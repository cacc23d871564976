// Attributes errors that escape a handler's promise to the attempt whose code threw them, for plain BullMQ processors.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AsyncContext, type Attempt, attributeUncaught, type UncaughtFate } from '@bullpen/engine/internal'

const storage = new AsyncLocalStorage<Attempt>()

/**
 * One context is shared by all processors of the process, because a process has a single stream of uncaught errors. Unlike a
 * pool's context, it keeps whatever else the team's Worker stores in the async context, such as a trace.
 */
export const attemptContext: AsyncContext = {
  run: (attempt, code) => storage.run(attempt, code, attempt),
  current: () => storage.getStore(),
}

/**
 * Attributes an uncaught error to the attempt that it escaped from, whichever processor runs that attempt. Call it on
 * `uncaughtException` and `unhandledRejection`. If it returns `unattributed`, the error belongs to no handler; close your Workers
 * and exit.
 */
export function escaped(error: unknown): UncaughtFate {
  return attributeUncaught(error, attemptContext)
}
