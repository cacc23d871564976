// GET /v1/tasks/{id} returns a task immediately or, with a wait, as soon as the task has ended.
import type { TaskView } from '@bullpen/contract'
import { explained, taskNotFound } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import { knownTaskId } from '../http/known-names.ts'
import type { IdCall } from '../http/routes/route.ts'
import { findOrWait, type WaitQuery } from '../http/wait.ts'
import { linkedTaskView } from '../views/linked-task-view.ts'

export function showTask(context: ApiContext) {
  const { catalogue, broker, closing } = context
  const view = linkedTaskView(context)
  return async (call: IdCall<WaitQuery>): Promise<TaskView> => {
    const id = knownTaskId(catalogue, call.params.id)
    const record = await findOrWait(
      call,
      closing,
      () => broker.find(id),
      (signal) => broker.waitUntilFinished(id, signal),
    )
    if (record === undefined) throw taskNotFound(id)
    return view(await explained(broker, record))
  }
}
