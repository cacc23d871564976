// Recognises the errors that occur when the machine refuses memory immediately, for example for one very large buffer. To the
// handler, they are errors like any other.
import type { Outcome } from '@bullpen/engine/isolate'

/** V8 does not give this error a code. */
const V8_MESSAGE = 'Array buffer allocation failed'
const NODE_CODE = 'ERR_MEMORY_ALLOCATION_FAILED'

/** Returns the outcome with the reason `out_of_memory` if it is a panic caused by such an error, and unchanged otherwise. */
export function classifyRefusedMemory(outcome: Outcome): Outcome {
  const isPanic = outcome.kind === 'panicked' && outcome.reason === 'unexpected_error'
  return isPanic && isRefusal(outcome.error) ? { ...outcome, reason: 'out_of_memory' } : outcome
}

function isRefusal(error: Error & { readonly code?: unknown }): boolean {
  try {
    return error instanceof RangeError && (error.message === V8_MESSAGE || error.code === NODE_CODE)
  } catch {
    return false // a getter of the error throws
  }
}
