// Checks what a handler returned: against its contract, and as the JSON that it will be stored as.
import type { TaskDefinition } from '@bullpen/contract'
import type { Outcome } from '../ports/attempt-result.ts'

/** `returned` with the parsed output, or `panicked` with invalid_output, naming the place, the size or what JSON refuses. */
export function checkOutput(returned: unknown, definition: TaskDefinition, limitBytes: number): Outcome {
  const { name, output, isolation } = definition
  try {
    // An isolate has parsed its output already: a schema's transform must not be applied twice.
    const parsed = isolation === 'inline' ? output.safeParse(returned) : ({ success: true, data: returned } as const)
    if (!parsed.success) {
      const places = parsed.error.issues.map(({ path, message }) => `${['output', ...path].join('.')}: ${message}`)
      return invalid(`the handler of ${name} returned what its contract refuses: ${places.join('; ')}`)
    }
    if (!isPlainlySmall(parsed.data, limitBytes)) {
      const length = jsonLength(parsed.data)
      if (length > limitBytes) {
        return invalid(`the output of ${name} takes ${length} bytes as JSON; the limit is ${limitBytes}`)
      }
    }
    return { kind: 'returned', output: parsed.data }
  } catch (cause) {
    return invalid(`the output of ${name} can't be stored as JSON: ${String(cause)}`)
  }
}

function invalid(message: string): Outcome {
  return { kind: 'panicked', reason: 'invalid_output', error: new TypeError(message) }
}

/** The most bytes that one character takes in JSON: `\u0000`. */
const WIDEST = 6
/** Above the longest number, and a key's quotes, colon and comma. */
const AROUND_A_FIELD = 32

/** Whether a look at its few flat fields is enough to know that it fits. Most outputs are such; JSON costs three times as much. */
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

/** In characters, which are bytes unless the text is not plain: near enough for a limit. Throws for cycles and bigints. */
function jsonLength(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}
