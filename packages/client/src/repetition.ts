// Decides which failed calls are sent again, and repeats them with growing delays.
import { type CallOutcome, ProblemError } from '@bullpen/contract/internal'
import type { HttpRequest } from './http/request.ts'
import { pauseFor } from './time-limit.ts'

/**
 * - `look-up`: the call changes nothing.
 * - `idempotent`: sending the call twice has the same effect as sending it once.
 * - `once`: sending the call twice may have a different effect.
 */
export type Repeatability = 'look-up' | 'idempotent' | 'once'

/** Calls `attempt` until it succeeds, or fails with an error after which the call is not repeated. */
export type Repeat = <T>(
  repeatability: Repeatability,
  attempt: (signal: AbortSignal | undefined) => Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>

/** Sends a request to the HTTP API, and repeats it if that is safe. Returns the parsed response. */
export type SendRequest = <T>(
  repeatability: Repeatability,
  request: HttpRequest<T>,
  signal: AbortSignal | undefined,
) => Promise<T>

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

/**
 * Creates the function that repeats calls. The delay starts at 100 ms and doubles up to 2 s, with a jitter of 20%, and is never
 * shorter than the API requests. `retryForMs` counts from the first try. When it is over, the next failure is thrown.
 */
export function createRepeat(retryForMs: number): Repeat {
  return async (repeatability, attempt, signal) => {
    const giveUpAt = performance.now() + retryForMs
    let mayHaveTakenEffect = false
    let taskId: string | undefined
    for (let delay = INITIAL_DELAY_MS; ; delay = Math.min(delay * 2, MAX_DELAY_MS)) {
      try {
        return await attempt(signal)
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof ProblemError)) throw error
        mayHaveTakenEffect ||= repeatability !== 'look-up' && error.outcome === 'unknown'
        taskId ??= error.taskId
        const wait = Math.max(delay * (0.8 + 0.4 * Math.random()), error.retryAfterMs ?? 0)
        const isLast = !mayRepeat(repeatability, error) || performance.now() + wait > giveUpAt
        if (isLast) throw withOutcome(error, mayHaveTakenEffect ? 'unknown' : 'refused', taskId)
        await pauseFor(wait, signal)
      }
    }
  }
}

/** If an API, or a proxy in front of it, responds with one of these statuses, it may soon respond normally again. */
const TEMPORARY_STATUSES: readonly unknown[] = [408, 502, 503, 504]

/** Returns whether the call may succeed, and have its effect only once, if it is sent again. */
export function mayRepeat(repeatability: Repeatability, error: ProblemError): boolean {
  if (repeatability === 'once' && error.outcome === 'unknown') return false
  const { code, status } = error
  switch (code) {
    case 'unreachable':
    case 'redis_unavailable':
    case 'redis_full':
      return true
    // Only an operator can change these conditions.
    case 'queue_draining':
    case 'unsafe_redis':
      return false
    default:
      return TEMPORARY_STATUSES.includes(status) || (status === 429 && repeatability === 'look-up')
  }
}

/** Returns the error with the outcome of all tries, and the id under which the task may have been stored. */
export function withOutcome(error: ProblemError, outcome: CallOutcome, taskId: string | undefined): ProblemError {
  if (error.outcome === outcome && error.taskId === taskId) return error
  const { code, status, detail, errors, requestId, retryAfterMs, cause } = error
  return new ProblemError({ ...{ code, status, detail, errors, requestId, taskId, retryAfterMs, cause }, outcome })
}
