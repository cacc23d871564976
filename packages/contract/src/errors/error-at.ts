// Converts the JSON Pointers of an error about one part of a request's body to pointers into the whole body.
import { BullpenError } from './errors.ts'

/**
 * Returns the error with pointers that begin with `at`, such as `/tasks/3`. If the error does not list any invalid values, it gets
 * a pointer to `at` itself.
 */
export function errorAt(error: BullpenError, at: string): BullpenError {
  const { code, message, errors, cause, taskId } = error
  const [first] = errors
  const beginsWithPlace = first !== undefined && 'pointer' in first && message.startsWith(`${first.pointer}: `)
  return new BullpenError(code, beginsWithPlace ? `${at}${message}` : `${at}: ${message}`, {
    cause,
    ...(taskId === undefined ? {} : { taskId }),
    errors:
      errors.length === 0
        ? [{ pointer: at, message }]
        : errors.map((each) => ('pointer' in each ? { ...each, pointer: `${at}${each.pointer}` } : each)),
  })
}
