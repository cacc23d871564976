// How long a look-up may be held: until its time is up, the API shuts down, or the caller has gone.
import type { ServerResponse } from 'node:http'
import { BullpenError } from '@bullpen/contract'

/** What a look-up may take once it has been told to end: one command to Redis. */
const LAST_LOOK_MS = 900

/**
 * Runs `look` with a signal that aborts at the first of the three.
 *
 * @throws BullpenError `redis_unavailable` when it does not come back within 0.9 s of that.
 */
export async function untilEither<T>(
  ms: number,
  closing: AbortSignal,
  response: ServerResponse,
  look: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { promise: overdue, reject } = Promise.withResolvers<never>()
  let lastLook: NodeJS.Timeout | undefined
  const end = () => {
    controller.abort()
    lastLook ??= setTimeout(() => reject(new BullpenError('redis_unavailable', 'Redis did not answer')), LAST_LOOK_MS)
  }
  // Not AbortSignal.any: `closing` lives as long as the process, and every look-up would hang on it.
  const timer = setTimeout(end, ms)
  closing.addEventListener('abort', end)
  response.once('close', end)
  if (closing.aborted) end()
  try {
    return await Promise.race([look(controller.signal), overdue])
  } finally {
    clearTimeout(timer)
    clearTimeout(lastLook)
    closing.removeEventListener('abort', end)
    response.removeListener('close', end)
  }
}
