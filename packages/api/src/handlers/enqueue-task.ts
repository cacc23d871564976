// POST /v1/tasks stores a task and returns its id.
import type { Accepted, EnqueueRequest } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import { callersId } from '../http/request-id.ts'
import type { Call } from '../http/routes/route.ts'
import { taskLinks } from '../views/links.ts'

export function enqueueTask({ catalogue, broker, emit, now, randomBytes }: ApiContext) {
  return async ({ body, request, reply }: Call): Promise<Accepted> => {
    // The body has been validated, but is still as the caller sent it.
    const wanted = body as EnqueueRequest
    const definition = catalogue.get(wanted.task)
    const enqueuedAt = now()
    const task = newTask(definition, wanted.input, wanted, {
      id: createTaskId(definition.queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES)),
      enqueuedAt,
      caller: 'only',
      correlationId: callersId(request.headers),
    })
    // The id is set before Redis is called, so that the problem contains the id even if Redis's reply is lost.
    request.taskId = task.id
    const { action } = await broker.enqueue(task)
    if (action === 'created') emit({ event: 'task.enqueued', queue: task.queue, task: task.task, id: task.id })
    const links = taskLinks(task.id)
    reply.code(202).header('location', links.self)
    return { id: task.id, action, status: task.delayMs === undefined ? 'waiting' : 'scheduled', links }
  }
}
