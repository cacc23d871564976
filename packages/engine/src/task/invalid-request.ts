// Creates the error for one place of a request.
import { BullpenError } from '@bullpen/contract'

/** `pointer` is a JSON Pointer. The message says what is wrong at this place, what is accepted and what to do. */
export function invalidRequest(pointer: string, message: string): BullpenError {
  return new BullpenError('invalid_request', `${pointer}: ${message}`, { errors: [{ pointer, message }] })
}
