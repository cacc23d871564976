// Defines the timers that limit and delay calls. They use only features that browsers also have.

/** The longest time that a timer can be set to, in ms. */
const MAX_TIMER_MS = 2 ** 31 - 1

interface TimeLimit {
  readonly signal: AbortSignal
  /** Ends the limit. The signal still follows the outer one. */
  lift(): void
  /** Releases the timer and the outer signal. Call it as soon as the limit is no longer needed. */
  stop(): void
}

/**
 * Returns a signal that aborts with `reason()` after `ms`, or with the outer signal's reason when that signal aborts. This is cheaper
 * than AbortSignal.any with AbortSignal.timeout, whose timers live until they fire and take a third of a request's CPU time.
 */
export function timeLimit(ms: number, outer: AbortSignal | undefined, reason: () => unknown): TimeLimit {
  const limit = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const wait = (left: number): void => {
    timer = setTimeout(
      () => (left > MAX_TIMER_MS ? wait(left - MAX_TIMER_MS) : limit.abort(reason())),
      Math.min(left, MAX_TIMER_MS),
    )
  }
  const lift = (): void => clearTimeout(timer)
  const stop = (): void => {
    lift()
    outer?.removeEventListener('abort', follow)
  }
  const follow = (): void => {
    stop()
    limit.abort(outer?.reason)
  }
  if (outer?.aborted) follow()
  else {
    outer?.addEventListener('abort', follow)
    wait(ms)
  }
  return { signal: limit.signal, lift, stop }
}

/** Resolves after `ms`, which is less than 24 days. Rejects with the signal's reason if the signal aborts first. */
export function pauseFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
