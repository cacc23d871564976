// GET /v1/tasks/{id} returns a task immediately or, with a wait, as soon as the task has ended.
import { isFinal, type TaskView } from '@bullpen/contract'
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
    // The task is read before the wait, because most tasks have already ended, and so that an unreachable Redis is noticed at
    // once.
    const found = await broker.find(id)
    const record =
      found === undefined || seconds === 0 || isFinal(found.status)
        ? found
        : await waitForEnd(context, reply, id, seconds)
    if (record === undefined) throw taskNotFound(id)
    return view(await explained(broker, record))
  }
}
