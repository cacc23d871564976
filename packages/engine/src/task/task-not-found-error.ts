// Defines the error for a task that does not exist or no longer exists.
import { BullpenError, type TaskId } from '@bullpen/contract'

export function taskNotFound(id: TaskId): BullpenError {
  return new BullpenError(
    'task_not_found',
    `task ${id} not found; it may have been deleted, or removed when its retention period ended`,
  )
}
