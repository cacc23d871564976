// GET /v1/dead-tasks returns the dead tasks of a queue that match a filter, newest first, page by page.
import type { TaskPage } from '@bullpen/contract'
import type { deadQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import { queueNotFound } from '../../http/problems/queue-not-found.ts'
import type { Call } from '../../http/routes/route.ts'
import { linkedTaskView } from '../../views/linked-task-view.ts'
import { deadFilter } from './dead-filter.ts'

export function searchDeadTasks(context: ApiContext) {
  const { catalogue, broker } = context
  const view = linkedTaskView(context)
  return async ({ query }: Call<unknown, z.output<typeof deadQuerySchema>>): Promise<TaskPage> => {
    const { limit, cursor, ...filter } = query
    if (!catalogue.queues.includes(filter.queue)) throw queueNotFound(filter.queue, catalogue.queues)
    const { tasks, next } = await broker.searchDead({ ...deadFilter(filter), limit, cursor })
    return { tasks: tasks.map(view), ...(next === undefined ? {} : { next }) }
  }
}
