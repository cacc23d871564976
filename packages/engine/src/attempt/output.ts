// Checks a handler's output against its definition's schema, and checks that it can be stored as JSON.
import type { TaskDefinition } from '@bullpen/contract'
import type { Outcome } from '../ports/attempt-result.ts'

/**
 * Returns `returned` with the parsed output, or `panicked` (invalid_output) if the output does not match the schema, exceeds the
 * size limit or cannot be represented as JSON.
 */
export function checkOutput(returned: unknown, definition: TaskDefinition, limitBytes: number): Outcome {
  const { name, output, isolation } = definition
  try {
    // An isolate has already parsed its output, and the schema's transforms must not run twice.
    const parsed = isolation === 'inline' ? output.safeParse(returned) : ({ success: true, data: returned } as const)
    if (!parsed.success) {
      const places = parsed.error.issues.map(({ path, message }) => `${['output', ...path].join('.')}: ${message}`)
      return invalid(`the output of ${name} does not match the schema in its definition: ${places.join('; ')}`)
    }
    if (!isPlainlySmall(parsed.data, limitBytes)) {
      const length = jsonLength(parsed.data)
      if (length > limitBytes) {
        return invalid(`the output of ${name} takes ${length} bytes as JSON; ${outputLimit(limitBytes)}`)
      }
    }
    return { kind: 'returned', output: parsed.data }
  } catch (cause) {
    return invalid(`the output of ${name} cannot be stored as JSON: ${String(cause)}`)
  }
}

/** Says what limits outputs and the results of steps, and how to change it. */
export function outputLimit(bytes: number): string {
  return `the limit is ${bytes} bytes (BULLPEN_WORKER_MAX_OUTPUT_BYTES, or maxOutputBytes in code), so return less, such as an id or a path, or raise the limit`
}

function invalid(message: string): Outcome {
  return { kind: 'panicked', reason: 'invalid_output', error: new TypeError(message) }
}

/** The maximum number of bytes that one character can take as JSON, as in `\u0000`. */
const WIDEST = 6
/** A number of bytes that is larger than what the longest number takes, including its key's quotes, the colon and the comma. */
const AROUND_A_FIELD = 32

/**
 * Returns whether an upper bound on the size of the output's flat fields proves that the output fits. Most outputs pass this
 * check, which costs a third as much as serialising them.
 */
function isPlainlySmall(output: unknown, limitBytes: number): boolean {
  if (typeof output !== 'object' || output === null || Object.getPrototypeOf(output) !== Object.prototype) return false
  let most = 2
  for (const key in output) {
    const value: unknown = Reflect.get(output, key)
    if (typeof value === 'string') most += value.length * WIDEST
    else if (typeof value !== 'number' && typeof value !== 'boolean') return false
    most += key.length * WIDEST + AROUND_A_FIELD
    if (most > limitBytes) return false
  }
  return true
}

/**
 * Returns the number of characters in the value's JSON. For ASCII, this equals the number of bytes, which is close enough for a
 * limit. Throws for cycles and bigints.
 */
function jsonLength(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}
