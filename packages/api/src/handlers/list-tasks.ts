// GET /v1/tasks: the tasks of one queue in one status, page by page.
import type { TaskPage } from '@bullpen/contract'
import type { listQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { noQueue } from '../http/queue-not-found.ts'
import type { Call } from '../http/route.ts'
import { viewOf } from '../views/task-view.ts'

export function listTasks({ catalogue, broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof listQuerySchema>>): Promise<TaskPage> => {
    const { queue, status, limit, cursor } = query
    if (!catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    const page = await broker.list({ queue, status, limit, cursor })
    return { tasks: page.tasks.map(viewOf), ...(page.next === undefined ? {} : { next: page.next }) }
  }
}
