// A promise with a timeout that uses Node's timers, for adapters and apps, which have no fake clock in their tests.
import { settlesWithin as settlesWithinOn } from '../time/with-timeout.ts'

/** Unlike a promise, Node's timers keep the process alive while the caller waits. */
const nodeTimers = {
  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

/**
 * Settles as the promise does, or rejects with `timeoutError()` if that takes longer than `ms`. The work behind the promise is
 * not stopped, and if it fails later, its error is ignored. No timer is left behind.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number, timeoutError: () => Error): Promise<T> {
  if (await settlesWithin(promise, ms)) return promise
  throw timeoutError()
}

/**
 * Resolves with whether the promise settles within `ms` and before `giveUp` aborts. It never rejects, and leaves no timer or
 * listener behind.
 */
export function settlesWithin(promise: Promise<unknown>, ms: number, giveUp?: AbortSignal): Promise<boolean> {
  return settlesWithinOn(nodeTimers, promise, ms, giveUp)
}
