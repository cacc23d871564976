// Ends a wait when a signal aborts or a time limit has passed.

/** Settles like the promise, or rejects with the signal's reason if the signal aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Runs `lookUp` with a signal that aborts after `ms`, or when the outer signal aborts. */
export async function afterTime<T>(
  ms: number,
  outer: AbortSignal | undefined,
  lookUp: (end: AbortSignal) => Promise<T>,
): Promise<T> {
  const end = new AbortController()
  const abort = (): void => end.abort()
  const timer = setTimeout(abort, ms)
  outer?.addEventListener('abort', abort)
  if (outer?.aborted) abort()
  try {
    return await lookUp(end.signal)
  } finally {
    clearTimeout(timer)
    outer?.removeEventListener('abort', abort)
  }
}
