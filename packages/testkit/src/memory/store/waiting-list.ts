// Keeps the waiting tasks of a memory store in the order in which they run.
import type { StoredTask } from './stored-task.ts'

export class WaitingList {
  /** Sorted by priority. */
  readonly #tasks: StoredTask[] = []

  /** The first task in this list runs next. */
  get all(): readonly StoredTask[] {
    return this.#tasks
  }

  /** Adds a task as the first or the last one of its priority. */
  add(task: StoredTask, where: 'first' | 'last'): void {
    const isBehind = ({ priority }: StoredTask) =>
      where === 'first' ? priority >= task.priority : priority > task.priority
    const at = this.#tasks.findIndex(isBehind)
    this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, task)
  }

  /** Removes a task if it is waiting. */
  remove(task: StoredTask): void {
    const at = this.#tasks.indexOf(task)
    if (at >= 0) this.#tasks.splice(at, 1)
  }
}
