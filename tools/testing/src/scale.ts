// Determines how much work a test does: a small amount in `npm test` and `npm run ci`, and the full amount in `npm run test:full`.
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** `full` in `npm run test:full`. */
    scale: Scale
  }
}

export type Scale = 'small' | 'full'

/** Returns the amount for this run, for example `amount({ small: 20, full: 200 })` attempts. */
export function amount(of: Readonly<Record<Scale, number>>): number {
  return of[inject('scale')]
}

/**
 * Returns this number of seeds, starting at 1. A full run begins with the seeds of a small run, so that a failed seed can be run
 * again by its number.
 */
export function seeds(of: Readonly<Record<Scale, number>>): readonly number[] {
  return Array.from({ length: amount(of) }, (_, at) => at + 1)
}
