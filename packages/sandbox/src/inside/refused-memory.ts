// Memory that the machine refuses at once, as it does to one very large buffer: to the handler an error like any other.
import type { Outcome } from '@bullpen/engine/internal'

/** V8's words; it gives no code with them. */
const WORDS_OF_V8 = 'Array buffer allocation failed'
const CODE_OF_NODE = 'ERR_MEMORY_ALLOCATION_FAILED'

/** Says `out_of_memory` of a panic that is such an error; any other outcome stays as it is. */
export function namingRefusedMemory(outcome: Outcome): Outcome {
  const unnamed = outcome.kind === 'panicked' && outcome.reason === 'unexpected_error'
  return unnamed && isRefusal(outcome.error) ? { ...outcome, reason: 'out_of_memory' } : outcome
}

function isRefusal(error: Error & { readonly code?: unknown }): boolean {
  try {
    return error instanceof RangeError && (error.message === WORDS_OF_V8 || error.code === CODE_OF_NODE)
  } catch {
    return false // its own getters throw
  }
}
