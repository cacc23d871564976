// Creates the errors for requests that concern a pipeline run.
import { BullpenError, type RunId, type RunPhase } from '@bullpen/contract'

export function runNotFound(id: RunId): BullpenError {
  return new BullpenError(
    'run_not_found',
    `run ${id} not found; a run is deleted when its 'keep' (one day by default) has passed since its end`,
  )
}

export function runNotEnded(id: RunId, state: RunPhase): BullpenError {
  const message = `run ${id} is ${state}; only a run that has ended can be deleted, so cancel it first and wait for its end`
  return new BullpenError('run_not_ended', message)
}
