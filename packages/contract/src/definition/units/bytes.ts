// Parses amounts of memory such as '256MiB' into bytes, and formats them.
import { BullpenError } from '../../errors/errors.ts'

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

/** Formats bytes in the largest unit that gives a whole number: 67108864 is `'64MiB'`, 1500 is `'1500 bytes'`. */
export function formatBytes(count: number): string {
  const unit = (['GiB', 'MiB'] as const).find((each) => count >= BYTES[each] && count % BYTES[each] === 0)
  return unit === undefined ? `${count} bytes` : `${count / BYTES[unit]}${unit}`
}
