// Defines the errors about a task that does not exist, and about an idempotency key that was used for two different requests.
import { BullpenError, type TaskId } from '@bullpen/contract'

export function taskNotFound(id: TaskId): BullpenError {
  return new BullpenError(
    'task_not_found',
    `task ${id} not found; it may have been deleted, or removed when its retention period ended`,
  )
}

export function keyReused(queue: string): BullpenError {
  return new BullpenError(
    'idempotency_key_reused',
    `the Idempotency-Key was already used for a different request to queue '${queue}'; use a new key for a new task`,
  )
}
