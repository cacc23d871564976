// Which attempt of this process the running code belongs to, for errors that escape a handler's promise.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AsyncContext, type Attempt, attributeUncaught, type UncaughtFate } from '@bullpen/engine/internal'

const storage = new AsyncLocalStorage<Attempt>()

/**
 * One for all processors of the process, since its uncaught errors are one stream. What else the Worker's code keeps in the
 * async context, such as a trace, stays there for the handler.
 */
export const attemptContext: AsyncContext = {
  run: (attempt, code) => storage.run(attempt, code, attempt),
  current: () => storage.getStore(),
}

/**
 * Charges an error that escaped a handler to its attempt, whichever processor runs it. Call it from `uncaughtException`
 * and `unhandledRejection`. `unattributed`: the error is no handler's, so close your Workers and exit.
 */
export function escaped(error: unknown): UncaughtFate {
  return attributeUncaught(error, attemptContext)
}
