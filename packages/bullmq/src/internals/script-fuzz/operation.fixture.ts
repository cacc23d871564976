// Defines the operations of the fuzz.
import type { FuzzWorld } from './fuzz-world.fixture.ts'

/** Returns false if there was nothing to do. `pick` and `n` are random numbers from 0 to 9,999. Throws if Redis refuses. */
export type FuzzOperation = (world: FuzzWorld, pick: number, n: number) => unknown

/** By name, with the weight with which an operation is drawn. */
export type FuzzOperations = Readonly<Record<string, readonly [weight: number, operation: FuzzOperation]>>

/** Returns the element at a random place, or undefined if there is none. */
export const at = <T>(all: readonly T[], pick: number): T | undefined => all[pick % Math.max(1, all.length)]
