// GET /v1/groups/{id}/events streams what happens to a group's members until the group has ended.
import { groupId } from '@bullpen/contract/internal'
import { openGroupStream, queuesWithEvents } from '@bullpen/engine/internal'
import type { FastifyReply } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { eventFrames } from './event-frames.ts'
import { lastEventId } from './stream-task-events.ts'

export function streamGroupEvents(context: ApiContext) {
  const { catalogue, broker, feeds, eventStreams } = context
  const toFrames = eventFrames(context)
  const queues = queuesWithEvents(catalogue)
  return async ({ params, request, reply }: Call<{ readonly id: string }>): Promise<FastifyReply> => {
    const id = groupId(params.id)
    const after = lastEventId(request)
    return eventStreams.send('group', request, reply, async (signal) =>
      toFrames(await openGroupStream({ feeds, broker }, { id, after, signal, queues })),
    )
  }
}
