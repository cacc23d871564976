// GET /v1/dead-tasks/requests lists the requests to retry or delete dead tasks by filter, and GET /v1/dead-tasks/requests/{id} shows
// one of them.
import { BullpenError, type DeadTaskRequest, type DeadTaskRequestPage } from '@bullpen/contract'
import type { deadRequestsQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import { queueNotFound } from '../../http/problems/queue-not-found.ts'
import type { Call } from '../../http/routes/route.ts'
import { deadRequestView } from '../../views/dead-task-view.ts'

export function listDeadRequests({ catalogue, broker }: ApiContext) {
  return async ({
    query: { queue, limit },
  }: Call<unknown, z.output<typeof deadRequestsQuerySchema>>): Promise<DeadTaskRequestPage> => {
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const queues = queue === undefined ? catalogue.queues : [queue]
    const found = await Promise.all(queues.map((each) => broker.listDeadRequests(each, limit)))
    const newest = found.flat().toSorted((a, b) => b.request.at - a.request.at)
    return { requests: newest.slice(0, limit).map(deadRequestView) }
  }
}

export function showDeadRequest({ broker }: ApiContext) {
  return async ({ params: { id } }: Call<{ readonly id: string }>): Promise<DeadTaskRequest> => {
    const progress = await broker.deadProgress(id)
    if (progress === undefined) throw deadRequestNotFound(id)
    return deadRequestView(progress)
  }
}

export function deadRequestNotFound(id: string): BullpenError {
  return new BullpenError(
    'dead_task_request_not_found',
    `request ${JSON.stringify(id.slice(0, 100))} not found; requests are kept for seven days after they are done`,
  )
}
