// GET /v1/tasks/{id}/events streams what happens to a task until the task has ended, and GET /v1/groups/{id}/events does so for the members
// of a group. GET /v1/queues/{queue}/events and GET /v1/events?tag= stream what happens to the tasks of a queue, or to those with a tag.
import { BullpenError } from '@bullpen/contract'
import { groupId } from '@bullpen/contract/internal'
import { openGroupStream, openQueueStream, openTaskStream, queuesWithEvents } from '@bullpen/engine/internal'
import type { FastifyReply } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import { knownQueues, knownTaskId } from '../../http/known-names.ts'
import type { Call, IdCall } from '../../http/routes/route.ts'
import { eventFrames } from './event-frames.ts'

export function streamTaskEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  return async ({ params, request, reply }: IdCall): Promise<FastifyReply> => {
    const id = knownTaskId(catalogue, params.id)
    return eventStreams.send('task', request, reply, async (signal) => {
      const check = ({ task }: { readonly task: string }): void => {
        if (catalogue.has(task) && !catalogue.get(task).events) throw noEvents(`the tasks of ${task}`)
      }
      return toFrames(await openTaskStream({ feeds, broker }, { id, after: lastEventId(request), signal, check }))
    })
  }
}

export function streamGroupEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  const queues = queuesWithEvents(catalogue)
  return async ({ params, request, reply }: IdCall): Promise<FastifyReply> => {
    const id = groupId(params.id)
    const after = lastEventId(request)
    return eventStreams.send('group', request, reply, async (signal) =>
      toFrames(await openGroupStream({ feeds, broker }, { id, after, signal, queues })),
    )
  }
}

export function streamQueueEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  const withEvents = queuesWithEvents(catalogue)
  return async ({ params, request, reply }: Call<{ readonly queue: string }>): Promise<FastifyReply> => {
    const queues = knownQueues(catalogue, params.queue)
    if (!withEvents.includes(params.queue)) throw noEvents(`the tasks of queue '${params.queue}'`)
    return eventStreams.send('queue', request, reply, async (signal) =>
      toFrames(await openQueueStream({ feeds, broker }, { queues, after: lastEventId(request), signal })),
    )
  }
}

export function streamTagEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  const queues = queuesWithEvents(catalogue)
  return async ({ query, request, reply }: Call<unknown, { readonly tag: string }>): Promise<FastifyReply> => {
    if (queues.length === 0) throw noEvents('the tasks of this catalogue')
    const matches = ({ body }: { readonly body: { readonly tags?: readonly string[] | undefined } }): boolean =>
      body.tags?.includes(query.tag) ?? false
    return eventStreams.send('tag', request, reply, async (signal) =>
      toFrames(await openQueueStream({ feeds, broker }, { queues, matches, after: lastEventId(request), signal })),
    )
  }
}

/** Returns the position from which a reader resumes its stream, or undefined if it opens a new one. */
function lastEventId({ headers }: Call['request']): string | undefined {
  const given = headers['last-event-id']
  const [first] = Array.isArray(given) ? given : [given]
  return first === '' ? undefined : first
}

/** Creates the error for a stream that would never contain an event. `about` is its subject, such as `the tasks of cpu.fib`. */
function noEvents(about: string): BullpenError {
  return new BullpenError(
    'no_events',
    `${about} have no events; set \`events: true\` in the task's definition, or wait for the task with GET /v1/tasks/{id}?wait=30s`,
  )
}
