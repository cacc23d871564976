// Decides whether a running task can be stopped, and determines a cancellation's outcome.
import { type CancelOutcome, type Catalogue, isFinal, type TaskRecord } from '@bullpen/contract'

/**
 * Returns whether a running task can be stopped. A task that is not in this catalogue may be a long task, so the worker that runs
 * it decides.
 */
export function stoppable(catalogue: Catalogue, task: string): boolean {
  return !catalogue.has(task) || catalogue.get(task).kind === 'long'
}

/**
 * Returns the cancellation's current outcome. A task that was signalled may have stopped in the meantime, or may have ended in
 * another way before the signal arrived.
 */
export function outcomeNow(answer: CancelOutcome, record: TaskRecord | undefined): CancelOutcome {
  if (answer !== 'cancelling' || record === undefined || !isFinal(record.status)) return answer
  return record.status === 'cancelled' ? 'cancelled' : 'already_ended'
}
