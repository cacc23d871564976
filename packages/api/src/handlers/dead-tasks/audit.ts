// Writes the audit line of a request that retries or deletes dead tasks.
import type { DeadTaskAction, Log } from '@bullpen/contract'

export interface AuditedRequest {
  readonly action: DeadTaskAction
  readonly queue: string
  /** The id of the task, or the filter that selects the tasks. */
  readonly filter: object
  /** How many dead tasks matched when the request was accepted. */
  readonly matching: number
  readonly by: string
  readonly requestId: string
  /** The id of a request by filter, whose progress can be looked up. */
  readonly deadTaskRequest?: string
}

/** Every accepted request writes one line with the same fields, whether it concerns one task or many. */
export function audit(log: Log, request: AuditedRequest): void {
  const { action, queue, filter, matching, by, requestId, deadTaskRequest } = request
  log.info({ action, queue, filter, matching, by, requestId, deadTaskRequest }, 'dead tasks: request accepted')
}
