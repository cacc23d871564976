// Waits for a promise, but not for ever.
import type { Clock } from '../ports/ports.ts'

/** Whether the promise settled within the time, and before it was hurried. Neither timer nor listener outlives the question. */
export async function settlesWithin(
  clock: Clock,
  promise: Promise<unknown>,
  ms: number,
  hurry?: AbortSignal,
): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const giveUp = (): void => resolve(false)
  const stop = clock.after(ms, giveUp)
  hurry?.addEventListener('abort', giveUp)
  if (hurry?.aborted) giveUp()
  const settled = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    stop()
    hurry?.removeEventListener('abort', giveUp)
  }
}
