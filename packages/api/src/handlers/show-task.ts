// GET /v1/tasks/{id} returns a task immediately or, with a wait, as soon as the task has ended.
import type { TaskView } from '@bullpen/contract'
import { readTaskId, taskId } from '@bullpen/contract/internal'
import { explained, taskNotFound } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { secondsToWait, type WaitQuery, waitForEnd } from '../http/wait.ts'
import { linkedTaskView } from '../views/linked-task-view.ts'

export interface ShowParams {
  readonly id: string
}

export function showTask(context: ApiContext) {
  const { catalogue, broker } = context
  const view = linkedTaskView(context)
  return async ({ params, query, request, reply }: Call<ShowParams, WaitQuery>): Promise<TaskView> => {
    const id = taskId(params.id)
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw taskNotFound(id)
    const seconds = secondsToWait(query, request, reply)
    const record = await (seconds === 0 ? broker.find(id) : waitForEnd(context, reply, id, seconds))
    if (record === undefined) throw taskNotFound(id)
    return view(await explained(broker, record))
  }
}
