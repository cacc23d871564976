// Bounds a long poll, which ends when its wait is over, when the API closes, or when the caller disconnects.
import type { ServerResponse } from 'node:http'
import { BullpenError } from '@bullpen/contract'
import { settlesWithin } from '@bullpen/engine/node'

/** After the signal, a look-up sends one more command to Redis. This limit bounds the wait for the reply. */
const LAST_READ_MS = 900

/**
 * Runs `lookUp` with a signal that aborts as soon as `ms` have passed, the API closes, or the caller disconnects, whichever comes
 * first.
 *
 * @throws BullpenError `redis_unavailable` if `lookUp` takes more than 0.9 s to settle after the signal.
 */
export async function abortOnFirst<T>(
  ms: number,
  closing: AbortSignal,
  response: ServerResponse,
  lookUp: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const abort = (): void => {
    controller.abort()
    resolve()
  }
  // AbortSignal.any is not used, because `closing` lives as long as the process and would keep a reference to every look-up.
  const timer = setTimeout(abort, ms)
  closing.addEventListener('abort', abort)
  const disconnected = disconnectOf(response)
  disconnected.add(abort)
  // The caller may have disconnected before this function was called.
  if (closing.aborted || response.destroyed) abort()
  const answer = lookUp(controller.signal)
  try {
    const overdue = aborted.then(async () => {
      if (await settlesWithin(answer, LAST_READ_MS)) return answer
      throw new BullpenError('redis_unavailable', `Redis did not respond within ${LAST_READ_MS} ms`)
    })
    return await Promise.race([answer, overdue])
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', abort)
    disconnected.delete(abort)
  }
}

const disconnects = new WeakMap<ServerResponse, Set<() => void>>()

/**
 * Returns the functions to call when the response closes. All look-ups of a request share them, because Node.js warns of a leak if the
 * response itself has more than 10 listeners, and each task of a bulk request may wait for room in its queue.
 */
function disconnectOf(response: ServerResponse): Set<() => void> {
  const known = disconnects.get(response)
  if (known !== undefined) return known
  const listeners = new Set<() => void>()
  response.once('close', () => {
    for (const listener of listeners) listener()
  })
  disconnects.set(response, listeners)
  return listeners
}
