// Waits for a promise for a limited time on the engine's clock. The version for Node's own timers is in node/with-timeout.ts.
import type { Clock } from '../ports/clock.ts'

/**
 * Resolves to true if the promise settles within `ms` and before `giveUp` aborts, and to false otherwise. Never rejects, because
 * a rejected promise has settled too. Does not leave a timer or a listener behind.
 */
export async function settlesWithin(
  clock: Pick<Clock, 'after'>,
  promise: Promise<unknown>,
  ms: number,
  giveUp?: AbortSignal,
): Promise<boolean> {
  const { promise: gaveUp, resolve } = Promise.withResolvers<false>()
  const stopWaiting = (): void => resolve(false)
  const cancelTimer = clock.after(ms, stopWaiting)
  giveUp?.addEventListener('abort', stopWaiting)
  if (giveUp?.aborted) stopWaiting()
  const settled = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, gaveUp])
  } finally {
    cancelTimer()
    giveUp?.removeEventListener('abort', stopWaiting)
  }
}
