// Converts an outcome to plain data and back. Its error is reduced to its name, message, stack, code and cause.
import type { Outcome } from '@bullpen/engine/isolate'
import { fromPortable, type PortableError, toPortable } from './portable-error.ts'

type WithError = Extract<Outcome, { readonly error: Error }>
type Portable<O> = O extends WithError ? Omit<O, 'error'> & { readonly error: PortableError } : O

export type PortableOutcome = Portable<Outcome>

export function packOutcome(outcome: Outcome): PortableOutcome {
  return 'error' in outcome ? { ...outcome, error: toPortable(outcome.error) } : outcome
}

export function unpackOutcome(outcome: PortableOutcome): Outcome {
  return 'error' in outcome ? { ...outcome, error: fromPortable(outcome.error) } : outcome
}
