// Keeps the waiting tasks of a memory store, and finds the one that runs next.
import type { StoredTask } from './stored-task.ts'
import { Turns } from './turns.ts'

export class WaitingList {
  /** Sorted by priority. */
  readonly #tasks: StoredTask[] = []
  readonly #turns = new Turns()

  /** The tasks by priority. The tasks of the same concurrency key run in this order, and so do those without a turn. */
  get all(): readonly StoredTask[] {
    return this.#tasks
  }

  /** Returns the task that runs next. */
  get next(): StoredTask | undefined {
    const first = (key: string | undefined) => this.#tasks.find(({ turn }) => turn?.key === key)
    const other = first(undefined)
    const key = this.#turns.next((each) => first(each) !== undefined, other !== undefined)
    return key === undefined ? other : first(key)
  }

  /** Returns how many tasks of its key start before a task. Returns undefined if the task has no turn or is not waiting. */
  ahead(task: StoredTask): number | undefined {
    if (task.turn === undefined) return undefined
    const at = this.#tasks.filter(({ turn }) => turn?.key === task.turn?.key).indexOf(task)
    return at < 0 ? undefined : at
  }

  /** Adds a task as the first or the last one of its priority. */
  add(task: StoredTask, where: 'first' | 'last'): void {
    const isBehind = ({ priority }: StoredTask) =>
      where === 'first' ? priority >= task.priority : priority > task.priority
    const at = this.#tasks.findIndex(isBehind)
    this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, task)
    if (task.turn !== undefined) this.#turns.join(task.turn.key)
  }

  /** Removes a task if it is waiting. */
  remove(task: StoredTask): void {
    const at = this.#tasks.indexOf(task)
    if (at >= 0) this.#tasks.splice(at, 1)
  }

  /** Removes a task that starts. */
  start(task: StoredTask): void {
    this.remove(task)
    this.#turns.started(task.turn)
  }
}
