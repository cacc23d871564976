// GET /v1/tasks/{id}/events streams what happens to a task until the task has ended.
import { readTaskId, taskId } from '@bullpen/contract/internal'
import { openTaskStream, taskNotFound } from '@bullpen/engine/internal'
import type { FastifyReply } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { eventFrames } from './event-frames.ts'
import { noEvents } from './no-events.ts'

export function streamTaskEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  return async ({ params, request, reply }: Call<{ readonly id: string }>): Promise<FastifyReply> => {
    const id = taskId(params.id)
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw taskNotFound(id)
    return eventStreams.send('task', request, reply, async (signal) => {
      const check = ({ task }: { readonly task: string }): void => {
        if (catalogue.has(task) && !catalogue.get(task).events) throw noEvents(`the tasks of ${task}`)
      }
      return toFrames(await openTaskStream({ feeds, broker }, { id, after: lastEventId(request), signal, check }))
    })
  }
}

/** Returns the position from which a reader resumes its stream, or undefined if it opens a new one. */
export function lastEventId({ headers }: Call['request']): string | undefined {
  const given = headers['last-event-id']
  const [first] = Array.isArray(given) ? given : [given]
  return first === '' ? undefined : first
}
