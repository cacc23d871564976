// The error for a task that ended without output.
import type { TaskView } from '@bullpen/contract'

/** The task is `dead`, `cancelled` or `expired`; `task` is all that the API shows of it. */
export class TaskEndedError extends Error {
  override readonly name = 'TaskEndedError'
  readonly task: TaskView
  /** The newest failed attempt's code, or the status when no attempt failed. */
  readonly code: string

  constructor(task: TaskView) {
    const why = task.error === undefined ? (task.reason ?? '') : `${task.error.code}: ${task.error.message}`
    super(`task ${task.id} is ${task.status}${why === '' ? '' : `: ${why}`}`)
    this.task = task
    this.code = task.error?.code ?? task.status
  }
}
