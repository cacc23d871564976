// GET /v1/tasks: the tasks of one queue in one status, page by page.
import { BullpenError, type listQuerySchema, nearest, type TaskPage } from '@bullpen/contract'
import type { z } from 'zod'
import type { ApiContext } from '../context.ts'
import type { Call } from '../route.ts'
import { viewOf } from '../task-view.ts'

export function listTasks({ catalogue, broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof listQuerySchema>>): Promise<TaskPage> => {
    const { queue, status, limit, cursor } = query
    if (!catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    const page = await broker.list({ queue, status, limit, cursor })
    return { tasks: page.tasks.map(viewOf), ...(page.next === undefined ? {} : { next: page.next }) }
  }
}

export function noQueue(name: string, known: readonly string[]): BullpenError {
  const near = nearest(name.slice(0, 100), known)
  const hint = near === undefined ? `known are ${known.join(', ')}` : `did you mean '${near}'?`
  return new BullpenError('queue_not_found', `no queue is named ${JSON.stringify(name.slice(0, 100))}; ${hint}`)
}
