// Defines the error for a task that ended without output.
import type { TaskView } from '@bullpen/contract'

/** Reports that a task is `dead`, `cancelled` or `expired`. */
export class TaskEndedError extends Error {
  override readonly name = 'TaskEndedError'
  /** The task as the API returned it. */
  readonly task: TaskView
  /** The code of the last failed attempt, or the status if no attempt failed. */
  readonly code: string

  constructor(task: TaskView) {
    const error = task.error ?? task.attempts.at(-1)?.error
    super(`task ${task.id} is ${task.status}${error === undefined ? '' : `: ${error.code}: ${error.message}`}`)
    this.task = task
    this.code = task.error?.code ?? task.status
  }
}
