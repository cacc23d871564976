// POST /v1/dead-tasks/retry and POST /v1/dead-tasks/delete retry or delete the dead tasks of a queue that match a filter, or count
// them.
import type { ChangeDeadRequest, DeadTaskAction, DeadTaskPreview, DeadTaskRequest } from '@bullpen/contract'
import { type changeDeadQuerySchema, DEAD_TASK_RATE } from '@bullpen/contract/internal'
import type { z } from 'zod'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import { queueNotFound } from '../../http/problems/queue-not-found.ts'
import type { Call } from '../../http/routes/route.ts'
import { deadRequestView, filterView } from '../../views/dead-task-view.ts'
import { audit } from './audit.ts'
import { deadFilter } from './dead-filter.ts'

export function changeDeadTasks({ catalogue, broker, log }: ApiContext, action: DeadTaskAction) {
  return async ({
    query,
    body,
    request,
    reply,
  }: Call<unknown, z.output<typeof changeDeadQuerySchema>>): Promise<DeadTaskRequest | DeadTaskPreview> => {
    // The body has been validated, but is still as the caller sent it.
    const { by: name, rate = DEAD_TASK_RATE.default, afterCompensation, ...given } = body as ChangeDeadRequest
    const { queue } = given
    if (!catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const filter = deadFilter(given)
    const counted = await broker.countMatchingDead(filter)
    if (query.dryRun) {
      reply.code(200)
      return { ...filterView(filter), ...counted }
    }
    const by = requesterOf(request, name)
    const stored = await broker.changeDead({
      ...{ action, filter, rate, by, counted },
      ...(afterCompensation !== undefined && { afterCompensation }),
    })
    const { id } = stored
    audit(log, {
      action,
      queue,
      filter: given,
      matching: counted.matching,
      by,
      requestId: request.id,
      deadTaskRequest: id,
    })
    const view = deadRequestView({ request: stored, changed: 0, doneAt: undefined })
    reply.code(202).header('location', view.links.self)
    return view
  }
}
