// Defines the error for a task that did not end before the caller's timeout.
import type { Duration } from '@bullpen/contract'

/** Reports that a task had not ended when the wait for it timed out. The task itself is not affected. */
export class ResultTimeoutError extends Error {
  override readonly name = 'ResultTimeoutError'
  /** The task's id, which you can use to continue the wait. */
  readonly id: string

  constructor(id: string, timeout: Duration) {
    super(`task ${id} did not end within ${timeout}`)
    this.id = id
  }
}
