// Defines the routes that search, count, retry and delete dead tasks.
import {
  deadQuerySchema,
  deletedSchema,
  deleteOneQuerySchema,
  fingerprintCountsSchema,
  fingerprintsQuerySchema,
  retriedSchema,
  retryOneSchema,
  taskPageSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { countFingerprints } from '../../handlers/dead-tasks/count-fingerprints.ts'
import { deleteTask } from '../../handlers/dead-tasks/delete-task.ts'
import { retryTask } from '../../handlers/dead-tasks/retry-task.ts'
import { searchDeadTasks } from '../../handlers/dead-tasks/search-dead-tasks.ts'
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
      problems: [
        // A request may have a body, although the route does not use it.
        'malformed_json',
        'invalid_request',
        'unauthorized',
        'task_not_found',
        'task_not_dead',
        'payload_too_large',
        'unsupported_media_type',
        'redis_unavailable',
      ],
      handle: deleteTask(context),
    }),
    route({
      method: 'GET',
      path: '/v1/dead-tasks',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'searchDeadTasks',
      summary: "Search a queue's dead tasks",
      description:
        'Returns the dead tasks that match every parameter, newest first. One request examines at most 2,000 tasks, or those of ' +
        'one `fingerprint`, so a page may be short or empty although more pages follow. Follow `next` until it is absent.',
      query: deadQuerySchema,
      headers: REQUEST_ID_HEADERS,
      responses: { 200: { description: 'One page.', schema: taskPageSchema } },
      problems: ['invalid_request', 'invalid_cursor', 'unauthorized', 'queue_not_found', 'redis_unavailable'],
      handle: searchDeadTasks(context),
    }),
    route({
      method: 'GET',
      path: '/v1/dead-tasks/fingerprints',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'countFingerprints',
      summary: 'Count dead tasks by kind of error',
      description:
        'Errors have the same fingerprint if their state, code, message and top stack frames agree. Numbers and ids in messages ' +
        'are ignored. The largest count comes first.',
      query: fingerprintsQuerySchema,
      headers: REQUEST_ID_HEADERS,
      responses: { 200: { description: 'The counts.', schema: fingerprintCountsSchema } },
      problems: ['invalid_request', 'unauthorized', 'queue_not_found', 'redis_unavailable'],
      handle: countFingerprints(context),
    }),
  ]
}
