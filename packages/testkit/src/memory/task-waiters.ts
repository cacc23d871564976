// Wakes the callers that wait for a task of the memory broker to end.
import { isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'

export class TaskWaiters {
  readonly #wakes = new Map<TaskId, Set<() => void>>()

  /** Lets the callers that wait for this task look at it again. */
  wake(id: TaskId): void {
    for (const wake of this.#wakes.get(id) ?? []) wake()
  }

  /** Resolves with what `find` returns once the task has ended or was deleted, or once the signal aborts. */
  async wait(
    id: TaskId,
    find: (id: TaskId) => TaskRecord | undefined,
    signal: AbortSignal,
  ): Promise<TaskRecord | undefined> {
    let changed = Promise.withResolvers<void>()
    const wake = (): void => changed.resolve()
    const wakes = this.#wakes.get(id) ?? new Set()
    this.#wakes.set(id, wakes.add(wake))
    signal.addEventListener('abort', wake)
    try {
      for (;;) {
        changed = Promise.withResolvers()
        const record = find(id)
        if (record === undefined || isFinal(record.status) || signal.aborted) return record
        await changed.promise
      }
    } finally {
      signal.removeEventListener('abort', wake)
      wakes.delete(wake)
      if (wakes.size === 0) this.#wakes.delete(id)
    }
  }
}
