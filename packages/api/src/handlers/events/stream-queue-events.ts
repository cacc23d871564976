// GET /v1/queues/{queue}/events and GET /v1/events?tag= stream what happens to the tasks of a queue, or to those with a tag.

import { openQueueStream, queuesWithEvents } from '@bullpen/engine/internal'
import type { FastifyReply } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import { queueNotFound } from '../../http/problems/queue-not-found.ts'
import type { Call } from '../../http/routes/route.ts'
import { eventFrames } from './event-frames.ts'
import { noEvents } from './no-events.ts'
import { lastEventId } from './stream-task-events.ts'

export function streamQueueEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  const withEvents = queuesWithEvents(catalogue)
  return async ({ params, request, reply }: Call<{ readonly queue: string }>): Promise<FastifyReply> => {
    const { queue } = params
    if (!catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    if (!withEvents.includes(queue)) throw noEvents(`the tasks of queue '${queue}'`)
    return eventStreams.send('queue', request, reply, async (signal) =>
      toFrames(await openQueueStream({ feeds, broker }, { queues: [queue], after: lastEventId(request), signal })),
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
