// Parses amounts of memory such as '256MiB' into bytes.
import { BullpenError } from '../errors/errors.ts'

type Unit = 'MiB' | 'GiB'

/** A whole number of mebibytes or gibibytes, such as `'256MiB'` or `'2GiB'`. */
export type Memory = `${number}${Unit}`

const BYTES: Readonly<Record<Unit, number>> = { MiB: 2 ** 20, GiB: 2 ** 30 }
const FORM = /^([1-9]\d{0,5})(MiB|GiB)$/

/**
 * Converts an amount of memory to bytes. `setting` is how the error message refers to the value. @throws BullpenError
 * `invalid_definition` unless `memory` is a whole number with a unit.
 */
export function bytes(memory: string, setting: string): number {
  const match = FORM.exec(memory)
  if (match === null) {
    throw new BullpenError(
      'invalid_definition',
      `${setting} is ${JSON.stringify(memory)}; expected a whole number with MiB or GiB, such as '256MiB'`,
    )
  }
  return Number(match[1]) * BYTES[match[2] as Unit]
}
