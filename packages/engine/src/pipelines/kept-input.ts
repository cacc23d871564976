// Defines how a task of a pipeline run refers to an input that is too large to be passed on. The run keeps the input until the task has
// ended and was counted. A large output therefore does not travel through the outbox of its run, the queue of the next stage and the
// replies of scripts, and each attempt reads it once.
import type { Envelope } from '@bullpen/contract/internal'

/** The largest value, in bytes of UTF-8, that is passed on as it is. */
export const MAX_PASSED_BYTES = 65_536

/** The first character of a reference, with which neither JSON nor any other value starts. The size of the input in bytes follows. */
export const REFERENCE_MARK = '@'

export function referenceTo(bytes: number): string {
  return `${REFERENCE_MARK}${bytes}`
}

/** Returns the size of the input to which a value refers, in bytes, or undefined if the value is not a reference. */
export function referredBytes(value: string): number | undefined {
  return value.startsWith(REFERENCE_MARK) ? Number(value.slice(REFERENCE_MARK.length)) : undefined
}

/** Returns the task of a run whose input the run keeps, or undefined if the stored envelope is not that of such a task. */
export function keeperOf(envelope: unknown): NonNullable<Envelope['run']> | undefined {
  const { keptInput, run } = (envelope ?? {}) as Partial<Envelope>
  return keptInput === undefined ? undefined : run
}
