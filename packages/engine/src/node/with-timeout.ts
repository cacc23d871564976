// A promise with a timeout, on Node's timers: for adapters and apps, which have no clock of their own to test with.
import { settlesWithin as settlesWithinOn } from '../time/with-timeout.ts'

/** Node's timers keep the process alive while a promise is waited for. */
const nodeTimers = {
  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

/**
 * Settles as the promise does, or rejects with `timeoutError()` when that takes longer than `ms`. The work behind the promise
 * is not stopped; if it fails later, its error is dropped. Leaves no timer behind.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number, timeoutError: () => Error): Promise<T> {
  if (await settlesWithin(promise, ms)) return promise
  throw timeoutError()
}

/** Whether the promise settles within `ms`, and before `giveUp` aborts. Never rejects; leaves no timer or listener behind. */
export function settlesWithin(promise: Promise<unknown>, ms: number, giveUp?: AbortSignal): Promise<boolean> {
  return settlesWithinOn(nodeTimers, promise, ms, giveUp)
}
