// GET /v1/tasks returns a queue's tasks that have a given status, page by page.
import type { TaskPage } from '@bullpen/contract'
import { type listQuerySchema, taskView } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { queueNotFound } from '../http/problems/queue-not-found.ts'
import type { Call } from '../http/routes/route.ts'

export function listTasks({ catalogue, broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof listQuerySchema>>): Promise<TaskPage> => {
    const { queue, status, limit, cursor } = query
    if (!catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const page = await broker.list({ queue, status, limit, cursor })
    return { tasks: page.tasks.map(taskView), ...(page.next === undefined ? {} : { next: page.next }) }
  }
}
