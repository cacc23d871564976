// Defines the error for a dead task that is not retried because compensations have undone its steps.
import { BullpenError, type TaskRecord } from '@bullpen/contract'

export function alreadyCompensated({ id }: Pick<TaskRecord, 'id'>): BullpenError {
  return new BullpenError(
    'already_compensated',
    `the compensations of task ${id} have been released, so a retry may find its steps undone; enqueue a new task, or retry this one with afterCompensation: true (--after-compensation)`,
  )
}
