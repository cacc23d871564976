// Defines the routes that retry and delete dead tasks.
import { deletedSchema, deleteOneQuerySchema, retriedSchema, retryOneSchema } from '@bullpen/contract/internal'
import { z } from 'zod'
import { deleteTask } from '../../handlers/dead-tasks/delete-task.ts'
import { retryTask } from '../../handlers/dead-tasks/retry-task.ts'
import type { ApiContext } from '../context.ts'
import { type Route, route } from './route.ts'

const idParams = z.object({ id: z.string().describe("The task's id.") })

const REQUEST_ID_HEADERS = [
  {
    name: 'X-Request-Id',
    description: 'An id for the request. It is returned with the response and appears in the logs.',
  },
]

export function deadTaskRoutes(context: ApiContext): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/tasks/:id/retry',
      access: 'key',
      tag: 'Tasks',
      operationId: 'retryTask',
      summary: 'Retry a dead task',
      description:
        'The task keeps its id and waits behind the other tasks of its queue. It gets all attempts of its retry policy ' +
        'again, and its total timeout starts again. Its fencing token continues to increase, and finished steps are not run ' +
        'again. The limits of the queue do not apply. With `input`, the task runs with a new input.',
      params: idParams,
      body: retryOneSchema,
      bodyRequired: false,
      headers: REQUEST_ID_HEADERS,
      responses: { 200: { description: 'The task will run again.', schema: retriedSchema } },
      problems: [
        'malformed_json',
        'invalid_request',
        'unauthorized',
        'task_not_found',
        'task_not_dead',
        'payload_too_large',
        'unsupported_media_type',
        'unknown_task',
        'invalid_input',
        'redis_unavailable',
      ],
      handle: retryTask(context),
    }),
    route({
      method: 'DELETE',
      path: '/v1/tasks/:id',
      access: 'key',
      tag: 'Tasks',
      operationId: 'deleteTask',
      summary: 'Delete a dead task',
      description: 'Deletes the task with its input, attempts and steps. A repeated request gets `task_not_found`.',
      params: idParams,
      query: deleteOneQuerySchema,
      headers: REQUEST_ID_HEADERS,
      responses: { 200: { description: 'The task is deleted.', schema: deletedSchema } },
      problems: ['invalid_request', 'unauthorized', 'task_not_found', 'task_not_dead', 'redis_unavailable'],
      handle: deleteTask(context),
    }),
  ]
}
