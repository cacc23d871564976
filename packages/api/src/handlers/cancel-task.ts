// POST /v1/tasks/{id}/cancel ends a task that has not started, and signals a task that is running. It does not stop a short task
// that is running. A task whose name is not in the catalogue is treated as a long task.
import type { Cancelled } from '@bullpen/contract'
import { taskLinks } from '@bullpen/contract/internal'
import { outcomeNow, stoppable, taskNotFound } from '@bullpen/engine/internal'
import { requesterIn } from '../auth/requester.ts'
import type { ApiContext } from '../http/context.ts'
import { knownTaskId } from '../http/known-names.ts'
import type { IdCall } from '../http/routes/route.ts'
import { type WaitQuery, waitForEnd } from '../http/wait.ts'

export async function cancelTask(context: ApiContext, call: IdCall<WaitQuery>): Promise<Cancelled> {
  const { catalogue, broker, emit } = context
  const id = knownTaskId(catalogue, call.params.id)
  const found = await broker.find(id)
  if (found === undefined) throw taskNotFound(id)
  const answer = await broker.cancel(id, { stoppable: stoppable(catalogue, found.task), by: requesterIn(call) })
  if (answer === 'not_found') throw taskNotFound(id)
  if (answer === 'cancelled') emit({ event: 'task.cancelled', queue: found.queue, task: found.task, id })
  const seconds = call.query.wait ?? 0
  const record =
    answer === 'cancelling' && seconds > 0 ? await waitForEnd(context, call.reply, id, seconds) : await broker.find(id)
  const { status } = record ?? found
  return { id, outcome: outcomeNow(answer, record), status, links: taskLinks(id) }
}
