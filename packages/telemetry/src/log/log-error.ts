// Describes an error for a log line with a closed list of fields, because the errors of HTTP clients contain requests with their
// secrets.

/** Longer chains of causes are cut off, because a cause may refer back to itself. */
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
    // An object without a prototype, or whose toString throws.
    return Object.prototype.toString.call(thrown)
  }
}
