// Checks a handler's output against its definition's schema, and checks that it can be stored as JSON.
import type { TaskDefinition } from '@bullpen/contract'
import type { Outcome } from '../ports/attempt-result.ts'
import { jsonText } from '../task/payload/json-text.ts'
import { messageOf } from '../verdict/thrown.ts'

// A handler may replace the methods of the global object.
const { parse } = JSON

/**
 * Returns `returned` with the output as its JSON represents it, or `panicked` (invalid_output) if the output does not match the schema,
 * exceeds the size limit or cannot be represented as JSON.
 */
export function checkOutput(returned: unknown, definition: TaskDefinition, limitBytes: number): Outcome {
  // An isolate has already parsed its output, and the schema's transforms must not run twice.
  return definition.isolation === 'inline'
    ? parseOutput(returned, definition, limitBytes)
    : storableOutput(returned, definition.name, limitBytes)
}

/** Like {@link checkOutput}, but where the handler runs. */
export function parseOutput(
  returned: unknown,
  { name, output }: Pick<TaskDefinition, 'name' | 'output'>,
  limitBytes = Number.POSITIVE_INFINITY,
): Outcome {
  try {
    const parsed = output.safeParse(returned)
    if (parsed.success) return storableOutput(parsed.data, name, limitBytes)
    const places = parsed.error.issues.map(({ path, message }) => `${['output', ...path].join('.')}: ${message}`)
    return invalidOutput(`the output of ${name} does not match the schema in its definition: ${places.join('; ')}`)
  } catch (cause) {
    return invalidOutput(`the output schema of ${name} threw: ${messageOf(cause)}`, cause)
  }
}

/** Returns the output as its JSON represents it, or `panicked` if there is no such JSON or if it is longer than the limit. */
function storableOutput(output: unknown, name: string, limitBytes: number): Outcome {
  if (isPlainlySmall(output, limitBytes)) return { kind: 'returned', output }
  let text: string | undefined
  try {
    text = jsonText(output, 'output')
  } catch (cause) {
    return invalidOutput(`the output of ${name} cannot be stored as JSON: ${messageOf(cause)}`, cause)
  }
  // The number of characters equals the number of bytes for ASCII, which is close enough for a limit.
  const length = text?.length ?? 0
  if (length > limitBytes) {
    return invalidOutput(`the output of ${name} takes ${length} bytes as JSON; ${outputLimit(limitBytes)}`)
  }
  return { kind: 'returned', output: text === undefined ? undefined : parse(text) }
}

/** Says what limits outputs and the results of steps, and how to change it. */
export function outputLimit(bytes: number): string {
  return `the limit is ${bytes} bytes (BULLPEN_WORKER_MAX_OUTPUT_BYTES, or maxOutputBytes in code), so return less, such as an id or a path, or raise the limit`
}

function invalidOutput(message: string, cause?: unknown): Outcome {
  return { kind: 'panicked', reason: 'invalid_output', error: new TypeError(message, { cause }) }
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
    else if (!Number.isFinite(value) && typeof value !== 'boolean') return false
    most += key.length * WIDEST + AROUND_A_FIELD
    if (most > limitBytes) return false
  }
  return true
}
