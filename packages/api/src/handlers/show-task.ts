// GET /v1/tasks/{id}: one task as it stands, or, for a caller who waits, as soon as it has ended.
import { BullpenError, isFinal, type TaskId, type TaskView } from '@bullpen/contract'
import { MAX_WAIT_S, readTaskId, taskId } from '@bullpen/contract/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiContext } from '../http/context.ts'
import { preferredWait } from '../http/prefer.ts'
import type { Call } from '../http/route.ts'
import { untilEither } from '../http/wait.ts'
import { viewOf } from '../views/task-view.ts'

export interface ShowParams {
  readonly id: string
}
export interface ShowQuery {
  readonly wait?: number | undefined
}

export function showTask(context: ApiContext) {
  const { catalogue, broker, closing } = context
  return async ({ params, query, request, reply }: Call<ShowParams, ShowQuery>): Promise<TaskView> => {
    const id = taskId(params.id)
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw notFound(id)
    const seconds = query.wait ?? applyPreference(request, reply)
    // Looks once before it waits: most have ended already, and a Redis that is down is noticed at once.
    const found = await broker.find(id)
    const record =
      found === undefined || seconds === 0 || isFinal(found.status)
        ? found
        : await untilEither(seconds * 1_000, closing, reply.raw, (signal) => broker.waitUntilFinished(id, signal))
    if (record === undefined) throw notFound(id)
    return viewOf(record)
  }
}

/** A preference is a wish, so a longer wait is cut where `?wait=` would be refused. */
function applyPreference(request: FastifyRequest, reply: FastifyReply): number {
  const wished = preferredWait(request.headers['prefer'])
  if (wished === undefined) return 0
  const seconds = Math.min(wished, MAX_WAIT_S)
  reply.header('preference-applied', `wait=${seconds}`)
  return seconds
}

export function notFound(id: TaskId): BullpenError {
  return new BullpenError('task_not_found', `there is no task ${id}; it may have been removed some time after its end`)
}
