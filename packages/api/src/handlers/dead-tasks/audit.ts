// Writes the audit line of a request that retries or deletes dead tasks.
import type { Log } from '@bullpen/contract'

export interface DeadTaskRequest {
  readonly action: 'retry' | 'delete'
  readonly queue: string
  /** The id of the task, or the filter that selects the tasks. */
  readonly filter: object
  /** How many dead tasks matched when the request was accepted. */
  readonly matching: number
  readonly by: string
  readonly requestId: string
}

/** Every accepted request writes one line with the same fields, whether it concerns one task or many. */
export function audit(log: Log, { action, queue, filter, matching, by, requestId }: DeadTaskRequest): void {
  log.info({ action, queue, filter, matching, by, requestId }, 'dead tasks: request accepted')
}
