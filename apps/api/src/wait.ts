// How long a look-up may be held: until its time is up, the API shuts down, or the caller has gone.
import type { ServerResponse } from 'node:http'

/** Runs `look` with a signal that aborts at the first of the three. */
export async function untilEither<T>(
  ms: number,
  closing: AbortSignal,
  response: ServerResponse,
  look: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const end = () => controller.abort()
  // Not AbortSignal.any: `closing` lives as long as the process, and every look-up would hang on it.
  const timer = setTimeout(end, ms)
  closing.addEventListener('abort', end)
  response.once('close', end)
  if (closing.aborted) end()
  try {
    return await look(controller.signal)
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', end)
    response.removeListener('close', end)
  }
}
