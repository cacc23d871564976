// Defines the error for a task that cannot be retried or deleted because it is not dead.
import { BullpenError, type TaskRecord } from '@bullpen/contract'

export function taskNotDead({ id, status }: Pick<TaskRecord, 'id' | 'status'>): BullpenError {
  return new BullpenError('task_not_dead', `task ${id} is ${status}; only dead tasks can be retried or deleted`)
}
