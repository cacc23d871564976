// GET /v1/tasks returns a queue's tasks that have a given status, page by page.
import type { TaskPage } from '@bullpen/contract'
import type { listQuerySchema } from '@bullpen/contract/internal'
import type { ApiContext } from '../http/context.ts'
import { knownQueues } from '../http/known-names.ts'
import type { QueryCall } from '../http/routes/route.ts'
import { linkedTaskView } from '../views/linked-task-view.ts'

export async function listTasks(context: ApiContext, { query }: QueryCall<typeof listQuerySchema>): Promise<TaskPage> {
  knownQueues(context.catalogue, query.queue)
  const { tasks, next } = await context.broker.list({ ...query, cursor: query.cursor })
  return { tasks: tasks.map(linkedTaskView(context)), ...(next !== undefined && { next }) }
}
