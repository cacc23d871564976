// POST /v1/dead-tasks/retry and POST /v1/dead-tasks/delete retry or delete the dead tasks of a queue that match a filter, or count them.
// GET /v1/dead-tasks/requests lists such requests, GET /v1/dead-tasks/requests/{id} shows one of them, and
// POST /v1/dead-tasks/requests/{id}/stop stops it.
import {
  BullpenError,
  type ChangeDeadRequest,
  type DeadTaskAction,
  type DeadTaskPreview,
  type DeadTaskRequest,
  type DeadTaskRequestPage,
} from '@bullpen/contract'
import { type changeDeadQuerySchema, DEAD_TASK_RATE, type deadRequestsQuerySchema } from '@bullpen/contract/internal'
import { requesterIn, requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import { knownQueues } from '../../http/known-names.ts'
import type { IdCall, QueryCall } from '../../http/routes/route.ts'
import { deadFilter, deadRequestView, filterView } from '../../views/dead-task-view.ts'
import { audit, auditStop } from './audit.ts'

export async function changeDeadTasks(
  { catalogue, broker, log }: ApiContext,
  action: DeadTaskAction,
  { query, body, request, reply }: QueryCall<typeof changeDeadQuerySchema>,
): Promise<DeadTaskRequest | DeadTaskPreview> {
  // The body has been validated, but is still as the caller sent it.
  const { by: name, rate = DEAD_TASK_RATE.default, afterCompensation, ...given } = body as ChangeDeadRequest
  const { queue } = given
  knownQueues(catalogue, queue)
  const filter = deadFilter(given)
  const counted = await broker.countMatchingDead(filter)
  if (query.dryRun) {
    reply.code(200)
    return { ...filterView(filter), ...counted }
  }
  const by = requesterOf(request, name)
  const stored = await broker.changeDead({ action, filter, rate, by, counted, afterCompensation })
  const { matching } = counted
  audit(log, { action, queue, filter: given, matching, by, requestId: request.id, deadTaskRequest: stored.id })
  const view = deadRequestView({ request: stored, changed: 0, doneAt: undefined })
  reply.code(202).header('location', view.links.self)
  return view
}

export async function listDeadRequests(
  { catalogue, broker }: ApiContext,
  { query: { queue, limit } }: QueryCall<typeof deadRequestsQuerySchema>,
): Promise<DeadTaskRequestPage> {
  const found = await Promise.all(knownQueues(catalogue, queue).map((each) => broker.listDeadRequests(each, limit)))
  const newest = found.flat().toSorted((a, b) => b.request.at - a.request.at)
  return { requests: newest.slice(0, limit).map(deadRequestView) }
}

export async function showDeadRequest({ broker }: ApiContext, { params: { id } }: IdCall): Promise<DeadTaskRequest> {
  const progress = await broker.deadProgress(id)
  if (progress === undefined) throw notFound(id)
  return deadRequestView(progress)
}

export async function stopDeadRequest({ broker, log }: ApiContext, call: IdCall): Promise<DeadTaskRequest> {
  const { id } = call.params
  const by = requesterIn(call)
  const progress = await broker.stopDead(id, by)
  if (progress === undefined) throw notFound(id)
  auditStop(log, progress, { by, requestId: call.request.id })
  return deadRequestView(progress)
}

function notFound(id: string): BullpenError {
  return new BullpenError(
    'dead_task_request_not_found',
    `request ${JSON.stringify(id.slice(0, 100))} not found; requests are kept for seven days after they are done`,
  )
}
