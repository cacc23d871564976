// Checks the progress that a handler reports.
import type { Progress } from '@bullpen/contract'

/** @throws RangeError if the fraction is not a number from 0 to 1. */
export function progressOf(fraction: number, note: string | undefined): Progress {
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1)) {
    throw new RangeError(`invalid progress: expected a fraction from 0 to 1, got ${String(fraction)}`)
  }
  return note === undefined ? { fraction } : { fraction, note: String(note) }
}
