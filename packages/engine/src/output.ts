// Checks what a handler returned: against its contract, and as the JSON that it will be stored as.
import type { TaskDefinition } from '@bullpen/contract'
import type { Outcome } from './outcome.ts'

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
    const length = jsonLength(parsed.data)
    if (length > limitBytes) {
      return invalid(`the output of ${name} takes ${length} bytes as JSON; the limit is ${limitBytes}`)
    }
    return { kind: 'returned', output: parsed.data }
  } catch (cause) {
    return invalid(`the output of ${name} can't be stored as JSON: ${String(cause)}`)
  }
}

function invalid(message: string): Outcome {
  return { kind: 'panicked', reason: 'invalid_output', error: new TypeError(message) }
}

/** In characters, which are bytes unless the text is not plain: near enough for a limit. Throws for cycles and bigints. */
function jsonLength(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}
