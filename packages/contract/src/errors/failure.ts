// A declared failure, however it was declared: thrown as a TaskError, or named by a classifier.

/** What a classifier says of an error that a handler threw. */
export interface Failure {
  /** Lower case, digits and underscores. */
  readonly code: string
  /** Whether another attempt can succeed. */
  readonly retryable: boolean
  /** The earliest next attempt, in ms from now; it replaces a shorter backoff. */
  readonly retryAfterMs?: number | undefined
}

/**
 * Says what a thrown error means: a failure that was to be expected, `'panic'` for one that an engineer should look at,
 * or undefined to leave it to the next classifier.
 */
export type Classifier = (error: unknown) => Failure | 'panic' | undefined
