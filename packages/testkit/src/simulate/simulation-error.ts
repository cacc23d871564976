// The error of a simulation.
import type { SimulationFault } from './faults.ts'

export type SimulationErrorCode =
  /** Interruptions make the handler repeat an effect, leave one out, or fail. */
  | 'not_idempotent'
  /** None of the requested kinds of interruption lets the task run again. */
  | 'no_interruption'
  /** The task does not complete even if nothing interrupts it. */
  | 'never_completes'
  /** The handler does not call a function that is marked as an effect. */
  | 'no_effects'
  /** Two runs with the same input and the same interruptions differ. */
  | 'non_deterministic'
  /** The simulation would take more than `maxRuns` runs, because the handler makes many calls. */
  | 'too_many_runs'

/** An error of `simulate`. Programs should use `code`, because the message is meant for people. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError'
  readonly code: SimulationErrorCode
  /** With the code `not_idempotent`, the faults. Otherwise empty. */
  readonly faults: readonly SimulationFault[]

  constructor(
    code: SimulationErrorCode,
    message: string,
    { cause, faults = [] }: { readonly cause?: unknown; readonly faults?: readonly SimulationFault[] } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.faults = faults
  }
}
