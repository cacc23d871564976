// How much a test does: a small amount in `npm test`, the full amount in `npm run test:full`.
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** `full` in `npm run test:full`. */
    scale: Scale
  }
}

export type Scale = 'small' | 'full'

/** The amount for this run: `amount({ small: 20, full: 200 })` attempts. */
export function amount(of: Readonly<Record<Scale, number>>): number {
  return of[inject('scale')]
}

/** That many seeds, from 1. A full run starts with the seeds of a small one, so that a failed seed can be run by its number. */
export function seeds(of: Readonly<Record<Scale, number>>): readonly number[] {
  return Array.from({ length: amount(of) }, (_, at) => at + 1)
}
