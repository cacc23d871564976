// Writes the audit line of a request that retries or deletes dead tasks, or that stops such a request.
import type { DeadTaskAction, Log } from '@bullpen/contract'
import type { DeadProgress } from '@bullpen/engine/internal'
import { filterView } from '../../views/dead-task-view.ts'

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

/** Writes a line for each request to stop, unless the stopped request was already done. A repeated request writes another line. */
export function auditStop(
  log: Log,
  { request, changed, stoppedBy }: DeadProgress,
  { by, requestId }: Pick<AuditedRequest, 'by' | 'requestId'>,
): void {
  if (stoppedBy === undefined) return
  const { id: deadTaskRequest, action, filter, counted } = request
  const { queue } = filter
  log.info(
    { action, queue, filter: filterView(filter), matching: counted.matching, changed, by, requestId, deadTaskRequest },
    'dead tasks: request stopped',
  )
}
