// DELETE /v1/tasks/{id} deletes a dead task.
import type { Deleted } from '@bullpen/contract'
import { readTaskId, taskId } from '@bullpen/contract/internal'
import { taskNotFound } from '@bullpen/engine/internal'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import type { ShowParams } from '../show-task.ts'
import { audit } from './audit.ts'
import { taskNotDead } from './task-not-dead.ts'

export function deleteTask({ catalogue, broker, log }: ApiContext) {
  return async ({
    params,
    query,
    request,
  }: Call<ShowParams, { readonly by?: string | undefined }>): Promise<Deleted> => {
    const id = taskId(params.id)
    const queue = readTaskId(id)?.queue ?? ''
    if (!catalogue.queues.includes(queue)) throw taskNotFound(id)
    const answer = await broker.deleteDead(id)
    const found = answer === 'not_dead' ? await broker.find(id) : undefined
    if (found !== undefined) throw taskNotDead(found)
    if (answer !== 'done') throw taskNotFound(id)
    const by = requesterOf(request, query.by)
    audit(log, { action: 'delete', queue, filter: { id }, matching: 1, by, requestId: request.id })
    return { id }
  }
}
