// Writes tasks and their inputs as JSON, with an error that the caller of an enqueue can act on.
import { BullpenError } from '@bullpen/contract'

/**
 * Returns a value as JSON, in which only the input of a task can be something that JSON cannot represent, such as a BigInt or an object
 * that contains itself.
 *
 * @throws BullpenError `invalid_input`.
 */
export function inputJson<T>(value: T): T extends object ? string : string | undefined
export function inputJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    // If an object contains itself, the other lines of the message show where.
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new BullpenError('invalid_input', `the input cannot be written as JSON: ${reason}`, { cause })
  }
}
