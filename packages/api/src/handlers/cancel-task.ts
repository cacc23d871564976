// POST /v1/tasks/{id}/cancel ends a task that has not started, and signals a task that is running. It does not stop a short task
// that is running. A task whose name is not in the catalogue is treated as a long task.
import type { Cancelled } from '@bullpen/contract'
import { readTaskId, taskId, taskLinks } from '@bullpen/contract/internal'
import { outcomeNow, stoppable, taskNotFound } from '@bullpen/engine/internal'
import { requesterOf } from '../auth/requester.ts'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { type WaitQuery, waitForEnd } from '../http/wait.ts'
import type { ShowParams } from './show-task.ts'

export function cancelTask(context: ApiContext) {
  const { catalogue, broker, emit } = context
  return async ({ params, query, body, request, reply }: Call<ShowParams, WaitQuery>): Promise<Cancelled> => {
    const id = taskId(params.id)
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw taskNotFound(id)
    const found = await broker.find(id)
    if (found === undefined) throw taskNotFound(id)
    // The body has been validated. It is undefined, null, or an object with an optional name.
    const { by } = (body ?? {}) as { readonly by?: string }
    const answer = await broker.cancel(id, {
      stoppable: stoppable(catalogue, found.task),
      by: requesterOf(request, by),
    })
    if (answer === 'not_found') throw taskNotFound(id)
    if (answer === 'cancelled') emit({ event: 'task.cancelled', queue: found.queue, task: found.task, id })
    const seconds = query.wait ?? 0
    const record =
      answer === 'cancelling' && seconds > 0 ? await waitForEnd(context, reply, id, seconds) : await broker.find(id)
    const { status } = record ?? found
    return { id, outcome: outcomeNow(answer, record), status, links: taskLinks(id) }
  }
}
