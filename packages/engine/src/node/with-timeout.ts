// Limits how long a promise is awaited, with Node's own timers. For adapters and apps, whose tests do not use a fake clock.
import { settlesWithin as settlesWithinOn } from '../time/with-timeout.ts'

/** Unlike a promise, Node's timers keep the process alive while the caller waits. */
const nodeTimers = {
  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

/**
 * Settles like the promise, or rejects with `timeoutError()` if the promise takes longer than `ms`. The work behind the promise
 * is not stopped, and if it fails later, its error is ignored. The timer is always cleared.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number, timeoutError: () => Error): Promise<T> {
  if (await settlesWithin(promise, ms)) return promise
  throw timeoutError()
}

/**
 * Resolves to true if the promise settles within `ms` and before `giveUp` aborts, and to false otherwise. Never rejects, and does
 * not leave a timer or a listener behind.
 */
export function settlesWithin(promise: Promise<unknown>, ms: number, giveUp?: AbortSignal): Promise<boolean> {
  return settlesWithinOn(nodeTimers, promise, ms, giveUp)
}
