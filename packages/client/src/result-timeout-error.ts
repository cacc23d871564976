// Defines the error for a task that did not end within the time for which the caller was willing to wait.
import type { Duration } from '@bullpen/contract'

/** Reports that a task had not ended when the wait for it timed out. The task itself is not affected. */
export class ResultTimeoutError extends Error {
  override readonly name = 'ResultTimeoutError'
  /** The task's id, with which the wait can be continued. */
  readonly id: string

  constructor(id: string, timeout: Duration) {
    super(`task ${id} did not end within ${timeout}`)
    this.id = id
  }
}
