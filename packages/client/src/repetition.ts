// Decides which failed calls are sent again, and repeats them with growing delays.
import { type CallOutcome, ProblemError } from '@bullpen/contract/internal'
import type { HttpRequest } from './http/request.ts'
import { pauseFor, timeLimit } from './time-limit.ts'

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
  /** How long a try may wait at the API, in ms. Defaults to 0. */
  waitMs?: number,
) => Promise<T>

/** Sends a request to the HTTP API, and repeats it if that is safe. Returns the parsed response. */
export type SendRequest = <T>(
  repeatability: Repeatability,
  request: HttpRequest<T>,
  signal: AbortSignal | undefined,
) => Promise<T>

export const INITIAL_DELAY_MS = 100
/** With jitter, a delay is at most 1.8 s, so that some try reaches an API that is up for only 2 s at a time. */
const MAX_DELAY_MS = 1_500

/** How many tries without a response should fit into the time for repeats. */
const SILENT_TRIES = 5
const MIN_SILENT_TRY_MS = 2_000

/**
 * Creates the function that repeats calls. The delay starts at 100 ms and doubles up to 1.5 s, with a jitter of 20%, and is never
 * shorter than the API requests. `retryForMs` counts from the end of the first try, so that it does not include the time for which that
 * try has waited. Later tries that wait extend it, by at most `waitMs` in total. The last try begins when this time is over, or before, if
 * the API requests a delay that would end later. After a try that waited long for a response in vain, all later tries except the last are
 * cut short ({@link limitOfRepeat}).
 */
export function createRepeat(retryForMs: number): Repeat {
  return async (repeatability, attempt, signal, waitMs = 0) => {
    let giveUpAt: number | undefined
    let extensionMs = waitMs
    let mayHaveTakenEffect = false
    let taskId: string | undefined
    let wasSilent = false
    for (let delay = INITIAL_DELAY_MS; ; delay = nextDelay(delay)) {
      const beganAt = performance.now()
      const leftMs = giveUpAt === undefined ? 0 : giveUpAt - beganAt
      const limitMs = wasSilent ? limitOfRepeat({ retryForMs, leftMs, waitMs }) : undefined
      const limit = limitMs === undefined ? undefined : timeLimit(limitMs, signal, () => noResponse(limitMs))
      try {
        return await attempt(limit?.signal ?? signal)
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof ProblemError)) throw error
        mayHaveTakenEffect ||= repeatability !== 'look-up' && error.outcome === 'unknown'
        taskId ??= error.taskId
        const now = performance.now()
        wasSilent ||= isSilent(error, now - beganAt - waitMs, retryForMs)
        const waitedMs = Math.min(now - beganAt, extensionMs)
        extensionMs -= waitedMs
        giveUpAt = giveUpAt === undefined ? now + retryForMs : giveUpAt + waitedMs
        const delayMs = withJitter(delay)
        const pauseMs = mayRepeat(repeatability, error)
          ? waitBeforeRetry({ delayMs, requestedMs: error.retryAfterMs, leftMs: giveUpAt - now })
          : undefined
        if (pauseMs === undefined) throw withOutcome(error, mayHaveTakenEffect ? 'unknown' : 'refused', taskId)
        await pauseFor(pauseMs, signal)
      } finally {
        limit?.stop()
      }
    }
  }
}

export function nextDelay(ms: number): number {
  return Math.min(ms * 2, MAX_DELAY_MS)
}

export function withJitter(ms: number): number {
  return ms * (0.8 + 0.4 * Math.random())
}

interface Repeating {
  readonly retryForMs: number
  /** How much time is left for repeats. */
  readonly leftMs: number
  /** How long the try may wait at the API. Defaults to 0. */
  readonly waitMs?: number
}

/**
 * Returns how long a try may take if an earlier one got no response, in ms, so that several tries fit into the time for repeats. Returns
 * undefined for the last one, which may take as long as the first.
 */
export function limitOfRepeat({ retryForMs, leftMs, waitMs = 0 }: Repeating): number | undefined {
  const limitMs = silentTryMs(retryForMs)
  return leftMs > limitMs ? limitMs + waitMs : undefined
}

/** Returns whether a failed try waited so long for a response that few tries like it would fit into the time for repeats. */
export function isSilent({ code }: ProblemError, silentForMs: number, retryForMs: number): boolean {
  return code === 'unreachable' && silentForMs >= silentTryMs(retryForMs)
}

function silentTryMs(retryForMs: number): number {
  return Math.max(MIN_SILENT_TRY_MS, retryForMs / SILENT_TRIES)
}

/** Creates the error for a try that was cut short. It may have taken effect. */
export function noResponse(limitMs: number): ProblemError {
  return new ProblemError({ code: 'unreachable', outcome: 'unknown', detail: `no response within ${limitMs} ms` })
}

interface NextWait {
  /** The delay before the next try if nothing else decides. */
  readonly delayMs: number
  /** The delay that the API requests. Defaults to 0. */
  readonly requestedMs: number | undefined
  /** How much time is left for retries. */
  readonly leftMs: number
}

/**
 * Returns how long to wait before the next try, in ms, or undefined if no time is left. A wait that would exceed the time is shortened,
 * so that the last try begins when the time is over, but not to less than the API requests.
 */
export function waitBeforeRetry({ delayMs, requestedMs = 0, leftMs }: NextWait): number | undefined {
  if (leftMs <= 0 || requestedMs > leftMs) return undefined
  // A timer drops the fraction of a millisecond, so the last wait would otherwise end before the time is over.
  return Math.ceil(Math.min(Math.max(delayMs, requestedMs), leftMs))
}

/**
 * If an API, or a proxy in front of it, responds with one of these statuses, it may soon respond normally again. Those from 520 are
 * Cloudflare's, for an API that did not respond, broke off or was too slow.
 */
const TEMPORARY_STATUSES: readonly unknown[] = [408, 502, 503, 504, 520, 521, 522, 523, 524]

/** Returns whether the call may succeed, and have its effect only once, if it is sent again. */
export function mayRepeat(repeatability: Repeatability, error: ProblemError): boolean {
  if (repeatability === 'once' && error.outcome === 'unknown') return false
  const { code, status } = error
  switch (code) {
    case 'unreachable':
    case 'redis_unavailable':
    case 'not_replicated':
    case 'redis_full':
    case 'group_busy':
      return true
    // Only an operator can change these conditions.
    case 'queue_draining':
    case 'fleet_too_old':
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
