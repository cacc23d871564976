// Defines what the parts of the memory broker share.
import type { TaskId } from '@bullpen/contract'
import type { Clock } from '@bullpen/engine/internal'
import type { MemoryStore } from './store/memory-store.ts'
import type { StoredTask } from './store/stored-task.ts'

export interface MemoryParts {
  readonly clock: Clock
  /** The tasks of all queues. */
  readonly tasks: ReadonlyMap<TaskId, StoredTask>
  /** @throws BullpenError `queue_not_found`. */
  readonly storeOf: (queue: string) => MemoryStore
}
