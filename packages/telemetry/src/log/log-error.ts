// Describes an error for a log line, using only a fixed list of fields. Other fields are left out because HTTP clients' errors
// often contain the request and its secrets.

/** The maximum number of nested causes in a description. A limit is necessary because a chain of causes may be circular. */
const DEEPEST_CAUSE = 5

export interface DescribedError {
  readonly type: string
  readonly message: string
  readonly code?: string | number
  readonly stack?: string
  readonly cause?: DescribedError
}

export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: textOf(error) }
  const { code } = error as { readonly code?: unknown }
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause === undefined || depth === DEEPEST_CAUSE ? {} : { cause: describeError(error.cause, depth + 1) }),
  }
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown)
  } catch {
    // The value has no prototype, or its toString method throws.
    return Object.prototype.toString.call(thrown)
  }
}
