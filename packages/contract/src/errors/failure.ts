// Defines declared failures, which a handler throws as a TaskError or a classifier recognises.
import { type Duration, milliseconds } from '../definition/units/duration.ts'

/** How a classifier describes an error that a handler threw. */
export interface Failure {
  /** Lower-case letters, digits and underscores, at most 64 characters. Other characters become underscores. */
  readonly code: string
  /** Whether another attempt can succeed. */
  readonly retryable: boolean
  /** The shortest delay before the next attempt. If the backoff is shorter, this delay replaces it. */
  readonly retryAfter?: Duration | undefined
}

/**
 * Decides what a thrown error means. Return a failure if the error is expected, `'panic'` if an engineer should look at it, or
 * undefined to leave the decision to the default classifier.
 */
export type Classifier = (error: unknown) => Failure | 'panic' | undefined

/** A failure as the engine uses it, with a valid code and the delay in milliseconds. */
export interface DeclaredFailure {
  readonly code: string
  readonly retryable: boolean
  readonly retryAfterMs?: number | undefined
}

/**
 * Normalises a failure. This function never throws, because an error here would hide the failure that is being declared. An
 * invalid code is turned into a valid one. `retryAfter` is dropped if it would have no effect, or if it is not a valid duration
 * ('0s', for example, is not).
 */
export function declareFailure({ code, retryable, retryAfter }: Failure): DeclaredFailure {
  return { code: normalizeCode(code), retryable, retryAfterMs: retryable ? delayMs(retryAfter) : undefined }
}

const MAX_CODE_LENGTH = 64

/** Converts a code to the accepted form: `Card declined` becomes `card_declined`, and `404` becomes `error_404`. */
function normalizeCode(code: unknown): string {
  const words = String(code)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
  if (words === '') return 'error'
  return (/^[a-z]/.test(words) ? words : `error_${words}`).slice(0, MAX_CODE_LENGTH)
}

function delayMs(delay: Duration | undefined): number | undefined {
  if (delay === undefined) return undefined
  try {
    return milliseconds(delay)
  } catch {
    return undefined
  }
}
