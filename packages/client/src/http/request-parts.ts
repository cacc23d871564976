// Encodes the parts of a request: its body and its wait.
import { ProblemError } from '@bullpen/contract/internal'

/** @throws ProblemError `invalid_input` if JSON cannot represent the value. */
export function toJson(value: object): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    // If an object contains itself, the other lines of the message show where.
    const [reason] = String((cause as Error).message).split('\n')
    const detail = `the input cannot be written as JSON: ${reason}`
    throw new ProblemError({ code: 'invalid_input', outcome: 'refused', detail, cause })
  }
}

export function waitQuery(waitMs: number): string {
  return waitMs === 0 ? '' : `?wait=${waitMs / 1_000}`
}
