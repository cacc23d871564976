// Defines the error for a task or a group that did not end before the caller's timeout.
import type { Duration } from '@bullpen/contract'

/** Reports that a task or a group had not ended when the wait for it timed out. The task or the group itself is not affected. */
export class ResultTimeoutError extends Error {
  override readonly name = 'ResultTimeoutError'
  /** The id of the task or the group, which you can use to continue the wait. */
  readonly id: string

  constructor(id: string, timeout: Duration, what: 'task' | 'group' | 'run' = 'task') {
    super(`${what} ${id} did not end within ${timeout}`)
    this.id = id
  }
}
