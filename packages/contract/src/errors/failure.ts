// Declared failures: thrown as a TaskError, or recognised by a classifier.
import { type Duration, milliseconds } from '../definition/duration.ts'

/** How a classifier describes an error that a handler threw. */
export interface Failure {
  /** Lower case, digits and underscores; other characters become underscores. At most 64 characters. */
  readonly code: string
  /** Whether another attempt can succeed. */
  readonly retryable: boolean
  /** The shortest delay before the next attempt. It replaces a shorter backoff. */
  readonly retryAfter?: Duration | undefined
}

/**
 * Says what a thrown error means: an expected failure, `'panic'` for an error that an engineer should look at, or undefined to
 * leave the decision to the default classifier.
 */
export type Classifier = (error: unknown) => Failure | 'panic' | undefined

/** A failure as the engine uses it, with a valid code and the delay in milliseconds. */
export interface DeclaredFailure {
  readonly code: string
  readonly retryable: boolean
  readonly retryAfterMs?: number | undefined
}

/**
 * Normalises a failure. It never throws: an error here would hide the failure that is being declared. A code is made valid,
 * and a `retryAfter` that is not a valid duration, such as '0s', or that has no effect is left out.
 */
export function declareFailure({ code, retryable, retryAfter }: Failure): DeclaredFailure {
  return { code: normalizeCode(code), retryable, retryAfterMs: retryable ? delayMs(retryAfter) : undefined }
}

const MAX_CODE_LENGTH = 64

/** `Card declined` becomes `card_declined`, `404` becomes `error_404`. */
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
