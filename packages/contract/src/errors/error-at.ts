// Converts the JSON Pointers of an error about one part of a request's body to pointers into the whole body.
import { BullpenError } from './errors.ts'
import { type FieldError, fieldErrorText } from './field-error.ts'

/**
 * Returns the error with the path `at`, for example `/tasks/3`, in front of each of its pointers. If the error does not list any
 * invalid values, `at` becomes its only pointer.
 */
export function errorAt(error: BullpenError, at: string): BullpenError {
  const { code, message, errors, cause, taskId, hadNoEffect } = error
  const moved = errors.map((each) => ('pointer' in each ? { ...each, pointer: `${at}${each.pointer}` } : each))
  return new BullpenError(code, messageAt(error, moved) ?? `${at}: ${message}`, {
    cause,
    hadNoEffect,
    ...(taskId === undefined ? {} : { taskId }),
    errors: errors.length === 0 ? [{ pointer: at, message }] : moved,
  })
}

/** Returns the message with the places of the moved errors, or undefined if the message mentions none of the errors. */
function messageAt({ message, errors }: BullpenError, moved: readonly FieldError[]): string | undefined {
  const placed = errors.reduce((text, each, i) => {
    const after = moved[i] ?? each
    return text.replace(fieldErrorText(each), () => fieldErrorText(after))
  }, message)
  return placed === message ? undefined : placed
}
