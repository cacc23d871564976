// GET /v1/tasks returns a queue's tasks that have a given status, page by page.
import type { TaskPage } from '@bullpen/contract'
import type { listQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { queueNotFound } from '../http/problems/queue-not-found.ts'
import type { Call } from '../http/routes/route.ts'
import { linkedTaskView } from '../views/linked-task-view.ts'

export function listTasks(context: ApiContext) {
  const { catalogue, broker } = context
  const view = linkedTaskView(context)
  return async ({ query }: Call<unknown, z.output<typeof listQuerySchema>>): Promise<TaskPage> => {
    const { queue, status, limit, cursor } = query
    if (!catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const page = await broker.list({ queue, status, limit, cursor })
    return { tasks: page.tasks.map(view), ...(page.next === undefined ? {} : { next: page.next }) }
  }
}
