// GET /v1/tasks/{id} returns a task immediately or, with a wait, as soon as the task has ended.
import { BullpenError, isFinal, type TaskId, type TaskView } from '@bullpen/contract'
import { MAX_WAIT_S, readTaskId, taskId } from '@bullpen/contract/internal'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'
import { preferredWait } from '../http/prefer.ts'
import type { Call } from '../http/routes/route.ts'
import { taskView } from '../views/task-view.ts'

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
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw taskNotFound(id)
    const seconds = query.wait ?? applyPreference(request, reply)
    // The task is read before the wait, because most tasks have already ended, and so that an unreachable Redis is noticed at
    // once.
    const found = await broker.find(id)
    const record =
      found === undefined || seconds === 0 || isFinal(found.status)
        ? found
        : await abortOnFirst(seconds * 1_000, closing, reply.raw, (signal) => broker.waitUntilFinished(id, signal))
    if (record === undefined) throw taskNotFound(id)
    return taskView(record)
  }
}

/**
 * Applies the Prefer header. The header is only a preference, so a wait that is too long is shortened, whereas one in `?wait=`
 * is rejected.
 */
function applyPreference(request: FastifyRequest, reply: FastifyReply): number {
  const preferred = preferredWait(request.headers['prefer'])
  if (preferred === undefined) return 0
  const seconds = Math.min(preferred, MAX_WAIT_S)
  reply.header('preference-applied', `wait=${seconds}`)
  return seconds
}

export function taskNotFound(id: TaskId): BullpenError {
  return new BullpenError(
    'task_not_found',
    `task ${id} not found; it may have been removed when its retention period ended`,
  )
}
