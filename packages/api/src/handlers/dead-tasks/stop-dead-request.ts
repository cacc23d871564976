// POST /v1/dead-tasks/requests/{id}/stop stops a retry or a delete of dead tasks by filter.
import type { DeadTaskRequest } from '@bullpen/contract'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { deadRequestView } from '../../views/dead-task-view.ts'
import { auditStop } from './audit.ts'
import { deadRequestNotFound } from './show-dead-requests.ts'

export function stopDeadRequest({ broker, log }: ApiContext) {
  return async ({ params: { id }, body, request }: Call<{ readonly id: string }>): Promise<DeadTaskRequest> => {
    // The body has been validated. It is undefined, null, or an object.
    const { by: name } = (body ?? {}) as { readonly by?: string }
    const by = requesterOf(request, name)
    const progress = await broker.stopDead(id, by)
    if (progress === undefined) throw deadRequestNotFound(id)
    auditStop(log, progress, { by, requestId: request.id })
    return deadRequestView(progress)
  }
}
