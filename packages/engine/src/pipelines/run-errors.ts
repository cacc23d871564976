// Creates the errors for requests that concern a pipeline run.
import { BullpenError, type RunId } from '@bullpen/contract'

export function runNotFound(id: RunId): BullpenError {
  return new BullpenError('run_not_found', `there is no run ${id}; a run is deleted some time after it has ended`)
}
