// Remembers which tasks were deleted soon after their enqueue, for the memory broker. A repeat of the call that stored such a task
// stores nothing.
import type { EnqueueAction, TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { type Clock, REPEATS_WITHIN_MS } from '@bullpen/engine/internal'
import { actionOnExisting, type StoredTask } from '../store/stored-task.ts'

export class RemovedTasks {
  readonly #clock: Clock
  readonly #tasks = new Map<TaskId, StoredTask>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(task: StoredTask): void {
    const oldest = this.#clock.now() - REPEATS_WITHIN_MS
    for (const [id, { enqueuedAt }] of this.#tasks) if (enqueuedAt < oldest) this.#tasks.delete(id)
    if (task.enqueuedAt >= oldest) this.#tasks.set(task.id, task)
  }

  /** Returns the action of an enqueue whose task was stored and has recently been deleted, or undefined if there is none. */
  actionOf({ id, caller }: NewTask): EnqueueAction | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined || task.enqueuedAt < this.#clock.now() - REPEATS_WITHIN_MS) return undefined
    // A call with another token is not a repeat of the call that stored the task.
    const token = typeof caller === 'object' ? caller.token : undefined
    return token === task.callerToken ? actionOnExisting(task, caller) : undefined
  }
}
