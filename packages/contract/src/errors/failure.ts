// A declared failure: thrown as a TaskError, or recognized by a classifier.

/** How a classifier describes an error that a handler threw. */
export interface Failure {
  /** Lower-case letters, digits and underscores. */
  readonly code: string
  /** Whether another attempt can succeed. */
  readonly retryable: boolean
  /** Time until the earliest next attempt, in ms; replaces a shorter backoff. */
  readonly retryAfterMs?: number | undefined
}

/**
 * Classifies a thrown error: an expected failure, `'panic'` for an error that an engineer should look at, or undefined to
 * leave it to the next classifier.
 */
export type Classifier = (error: unknown) => Failure | 'panic' | undefined
