// Converts an outcome to plain data and back. Its output is JSON, and its error is reduced to its name, message, stack, code and cause.
import { fromPortable, type Outcome, type PortableError, toPortable } from '@bullpen/engine/isolate'

// A handler may replace the methods of the global object.
const { stringify, parse } = JSON

type Returned = Extract<Outcome, { readonly kind: 'returned' }>
type WithError = Extract<Outcome, { readonly error: Error }>
type Portable<O> = O extends Returned
  ? { readonly kind: 'returned'; readonly json: string | undefined }
  : O extends WithError
    ? Omit<O, 'error'> & { readonly error: PortableError }
    : O

export type PortableOutcome = Portable<Outcome>

/** The output of an outcome that `callHandler` has returned can be written as JSON. */
export function packOutcome(outcome: Outcome): PortableOutcome {
  if (outcome.kind === 'returned') return { kind: 'returned', json: stringify(outcome.output) }
  return 'error' in outcome ? { ...outcome, error: toPortable(outcome.error) } : outcome
}

export function unpackOutcome(outcome: PortableOutcome): Outcome {
  if (outcome.kind === 'returned') {
    return { kind: 'returned', output: outcome.json === undefined ? undefined : parse(outcome.json) }
  }
  return 'error' in outcome ? { ...outcome, error: fromPortable(outcome.error) } : outcome
}
