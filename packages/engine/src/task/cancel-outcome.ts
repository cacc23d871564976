// Decides how a task is cancelled, and what has come of it.
import { type CancelOutcome, type Catalogue, isFinal, type TaskRecord } from '@bullpen/contract'

/**
 * Returns whether a running task can be stopped. A task that is not in this catalogue may be a long one, so the decision is left to
 * the worker that runs it.
 */
export function stoppable(catalogue: Catalogue, task: string): boolean {
  return !catalogue.has(task) || catalogue.get(task).kind === 'long'
}

/**
 * Returns the outcome as of now. A task that was signalled may have stopped in the meantime, or may have ended in another way
 * before the signal arrived.
 */
export function outcomeNow(answer: CancelOutcome, record: TaskRecord | undefined): CancelOutcome {
  if (answer !== 'cancelling' || record === undefined || !isFinal(record.status)) return answer
  return record.status === 'cancelled' ? 'cancelled' : 'already_ended'
}
