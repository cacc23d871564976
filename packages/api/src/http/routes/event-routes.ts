// Defines the routes that stream events.
import { eventsQuerySchema, groupStreamSchema, queueStreamSchema, taskStreamSchema } from '@bullpen/contract/internal'
import { z } from 'zod'
import {
  streamGroupEvents,
  streamQueueEvents,
  streamTagEvents,
  streamTaskEvents,
} from '../../handlers/events/event-streams.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  description:
    'The id of the last event that the reader has received. The stream continues after this event. If events after it are no longer ' +
    'kept, the stream continues with a `gap` and a `snapshot`.',
}

const CONTENT_TYPE = 'text/event-stream'

const HOW_IT_ENDS =
  ' Comments are sent as heartbeats. A reader that does not read for 15 s is disconnected, and so are all readers when the API shuts ' +
  'down. The last event is then `disconnected` with the reason, and has no id.'

const routes = routesOf({ tag: 'Events' })

export function eventRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/v1/tasks/:id/events', {
      operationId: 'streamTaskEvents',
      summary: 'Stream the events of a task',
      description:
        'Returns server-sent events until the task has ended. The `event` field is the type, and `data` is JSON. A new stream begins ' +
        'with the event `enqueued`, or with a `snapshot` of the task if that event is no longer kept. No event is missed between ' +
        `enqueueing a task and streaming its events.${HOW_IT_ENDS}`,
      params: z.object({ id: z.string().describe("The task's id.") }),
      headers: [LAST_EVENT_ID],
      responses: {
        200: { description: 'The events of the task.', schema: taskStreamSchema, contentType: CONTENT_TYPE },
      },
      problems: ['invalid_cursor', 'task_not_found', 'no_events', 'redis_unavailable'],
      handle: streamTaskEvents(context),
    }),
    routes.get('/v1/queues/:queue/events', {
      operationId: 'streamQueueEvents',
      summary: 'Stream the events of a queue',
      description: `Returns server-sent events. A new stream begins with a \`snapshot\` of the number of tasks by status.${HOW_IT_ENDS}`,
      params: z.object({ queue: z.string().describe('The name of the queue.') }),
      headers: [LAST_EVENT_ID],
      responses: {
        200: { description: 'The events of the queue.', schema: queueStreamSchema, contentType: CONTENT_TYPE },
      },
      problems: ['invalid_cursor', 'queue_not_found', 'no_events', 'redis_unavailable'],
      handle: streamQueueEvents(context),
    }),
    routes.get('/v1/groups/:id/events', {
      operationId: 'streamGroupEvents',
      summary: "Stream the events of a group's members",
      description:
        'Returns server-sent events until the group has ended. The last event is `group_ended`. A new stream begins with the first ' +
        'event of the members, whenever it is opened, or with a `snapshot` of the group if that event may no longer be kept. The ' +
        'stream includes queues in which the group has members later. After a `snapshot`, it continues with the oldest event that is ' +
        'kept. The events of one queue are in order. Members without events, such as most short tasks, appear only in the ' +
        `counts of the group.${HOW_IT_ENDS}`,
      params: z.object({ id: z.string().describe("The group's id.") }),
      headers: [LAST_EVENT_ID],
      responses: {
        200: {
          description: "The events of the group's members.",
          schema: groupStreamSchema,
          contentType: CONTENT_TYPE,
        },
      },
      problems: ['invalid_cursor', 'group_not_found', 'redis_unavailable'],
      handle: streamGroupEvents(context),
    }),
    routes.get('/v1/events', {
      operationId: 'streamEvents',
      summary: 'Stream the events of tasks with a tag',
      description:
        'Returns server-sent events of the tasks in all queues that have this tag. The events of one queue are in order. A new stream ' +
        `begins with a \`snapshot\` of the number of tasks in each queue by status.${HOW_IT_ENDS}`,
      query: eventsQuerySchema,
      headers: [LAST_EVENT_ID],
      responses: {
        200: {
          description: 'The events of the tasks with this tag.',
          schema: queueStreamSchema,
          contentType: CONTENT_TYPE,
        },
      },
      problems: ['invalid_cursor', 'no_events', 'redis_unavailable'],
      handle: streamTagEvents(context),
    }),
  ]
}
