// The routes of tasks: enqueue, look up, list, cancel.
import {
  acceptedSchema,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  cancelManyQuerySchema,
  cancelOneQuerySchema,
  cancelOneSchema,
  cancelPreviewSchema,
  enqueueBodySchema,
  listQuerySchema,
  taskPageSchema,
  taskViewSchema,
  waitSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { cancelByFilter, showCancel } from '../../handlers/cancel-by-filter.ts'
import { cancelTask } from '../../handlers/cancel-task.ts'
import { enqueueTask } from '../../handlers/enqueue-task.ts'
import { listTasks } from '../../handlers/list-tasks.ts'
import { showTask } from '../../handlers/show-task.ts'
import type { ApiContext } from '../context.ts'
import { type Route, route } from './route.ts'

const REQUEST_ID_HEADERS = [
  { name: 'X-Request-Id', description: 'An id that the answer repeats, and that the logs and the task carry.' },
  { name: 'traceparent', description: 'W3C Trace Context; its trace id is used if there is no X-Request-Id.' },
]

const idParams = z.object({ id: z.string().describe('The id of the task.') })

export function taskRoutes(context: ApiContext): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/tasks',
      access: 'key',
      tag: 'Tasks',
      operationId: 'enqueueTask',
      summary: 'Enqueue a task',
      description:
        "Validates the input against the task's contract, stores the task in Redis as it was sent, and answers with its " +
        'id. If the answer is `redis_unavailable`, the task may have been stored: look it up by the `taskId` of the ' +
        'problem before sending it again.',
      body: enqueueBodySchema(context.catalogue),
      headers: REQUEST_ID_HEADERS,
      answers: {
        202: {
          description: 'The task is stored.',
          schema: acceptedSchema,
          headers: [{ name: 'Location', description: 'The path of the task.' }],
        },
      },
      problems: [
        'malformed_json',
        'invalid_request',
        'unauthorized',
        'payload_too_large',
        'unsupported_media_type',
        'unknown_task',
        'invalid_input',
        'queue_draining',
        'redis_unavailable',
      ],
      handle: enqueueTask(context),
    }),
    route({
      method: 'GET',
      path: '/v1/tasks/:id',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'showTask',
      summary: 'Show a task, or wait for its end',
      description:
        'With `?wait=SECONDS` (at most 30) or the header `Prefer: wait=SECONDS`, answers as soon as the status of the ' +
        'task is final. When the time is up, answers with the task as it is: check `status`.',
      params: idParams,
      query: z.strictObject({
        wait: waitSchema.optional().describe('Seconds to wait for the end of the task: 0 to 30.'),
      }),
      headers: [
        { name: 'Prefer', description: '`wait=SECONDS` (RFC 7240); more than 30 is treated as 30.' },
        ...REQUEST_ID_HEADERS,
      ],
      answers: {
        200: {
          description: 'The task.',
          schema: taskViewSchema,
          headers: [{ name: 'Preference-Applied', description: '`wait=SECONDS`, if the header was honoured.' }],
        },
      },
      problems: ['invalid_request', 'unauthorized', 'task_not_found', 'redis_unavailable'],
      handle: showTask(context),
    }),
    route({
      method: 'POST',
      path: '/v1/tasks/:id/cancel',
      access: 'key',
      tag: 'Tasks',
      operationId: 'cancelTask',
      summary: 'Cancel a task',
      description:
        'A waiting, scheduled or retrying task ends at once and never starts. A running one is signalled: its handler has ' +
        'its grace period to stop; after that an isolated handler is killed. The request is stored, so it also reaches a ' +
        'worker that is cut off or restarting. With `?wait=SECONDS`, answers when the task has ended. Idempotent.',
      params: idParams,
      query: cancelOneQuerySchema,
      body: cancelOneSchema,
      bodyRequired: false,
      headers: REQUEST_ID_HEADERS,
      answers: { 200: { description: 'The result of the request: check `outcome`.', schema: cancelledSchema } },
      problems: ['malformed_json', 'invalid_request', 'unauthorized', 'task_not_found', 'redis_unavailable'],
      handle: cancelTask(context),
    }),
    route({
      method: 'POST',
      path: '/v1/tasks/cancel',
      access: 'key',
      tag: 'Tasks',
      operationId: 'cancelTasks',
      summary: 'Cancel the tasks of a queue by name, tag and age',
      description:
        'Cancels the tasks of a queue that match every field and were enqueued before the request. Once this is answered, ' +
        'none of them starts any more, and each is shown as `cancelled`; moving them out of the queue takes longer. Long ' +
        'tasks that are running are signalled; short ones finish and are not retried. Takes up to 2.5 s if a worker does ' +
        'not respond. With `?dryRun=true`, cancels nothing and answers how many tasks match.',
      query: cancelManyQuerySchema,
      body: cancelFilterSchema,
      headers: REQUEST_ID_HEADERS,
      answers: {
        200: { description: 'With `dryRun`: how many tasks match now.', schema: cancelPreviewSchema },
        202: {
          description: 'No matching task starts any more.',
          schema: cancellationSchema,
          headers: [{ name: 'Location', description: 'The path of the progress of this cancel.' }],
        },
      },
      problems: [
        'malformed_json',
        'invalid_request',
        'unauthorized',
        'queue_not_found',
        'payload_too_large',
        'unsupported_media_type',
        'unknown_task',
        'redis_unavailable',
      ],
      handle: cancelByFilter(context),
    }),
    route({
      method: 'GET',
      path: '/v1/cancels/:id',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'showCancel',
      summary: 'Show the progress of a cancel by filter',
      description: 'Available until 24 hours after the cancel is done.',
      params: z.object({ id: z.string().describe('The id of the cancel.') }),
      headers: REQUEST_ID_HEADERS,
      answers: { 200: { description: 'The cancel.', schema: cancellationSchema } },
      problems: ['unauthorized', 'cancel_not_found', 'redis_unavailable'],
      handle: showCancel(context),
    }),
    route({
      method: 'GET',
      path: '/v1/tasks',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'listTasks',
      summary: 'List the tasks of a queue that have one status',
      description:
        'The order is that of the Redis structure that holds the status. A task that changes its status between two pages ' +
        'leaves the listing, and appears in the listing of its new status; one that returns may appear twice. Follow ' +
        '`next` until it is absent.',
      query: listQuerySchema,
      headers: REQUEST_ID_HEADERS,
      answers: { 200: { description: 'One page.', schema: taskPageSchema } },
      problems: ['invalid_request', 'invalid_cursor', 'unauthorized', 'queue_not_found', 'redis_unavailable'],
      handle: listTasks(context),
    }),
  ]
}
