// Defines the routes that search, count, retry and delete dead tasks.
import {
  changeDeadQuerySchema,
  changeDeadSchema,
  deadPreviewSchema,
  deadQuerySchema,
  deadRequestPageSchema,
  deadRequestSchema,
  deadRequestsQuerySchema,
  deletedSchema,
  deleteOneQuerySchema,
  fingerprintCountsSchema,
  fingerprintsQuerySchema,
  retriedSchema,
  retryOneSchema,
  stopDeadSchema,
  taskPageSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import {
  changeDeadTasks,
  listDeadRequests,
  showDeadRequest,
  stopDeadRequest,
} from '../../handlers/dead-tasks/dead-requests.ts'
import { deleteTask, retryTask } from '../../handlers/dead-tasks/one-task.ts'
import { countFingerprints, searchDeadTasks } from '../../handlers/dead-tasks/search-dead-tasks.ts'
import type { ApiContext } from '../context.ts'
import { REQUEST_ID_HEADERS, taskIdParams } from './request-parts.ts'
import { type Route, routesOf } from './route.ts'

/** What the routes have in common that retry or delete tasks by filter. */
const CHANGE = {
  query: changeDeadQuerySchema,
  body: changeDeadSchema,
  responses: {
    200: { description: 'The number of tasks that match now, if `dryRun` is set.', schema: deadPreviewSchema },
    202: {
      description: 'The request is stored and will be carried out.',
      schema: deadRequestSchema,
      location: "The path that shows the request's progress.",
    },
  },
  problems: ['redis_unavailable', 'queue_not_found', 'too_many_dead_task_requests'],
} as const

const routes = routesOf({ tag: 'Tasks', headers: REQUEST_ID_HEADERS })

export function deadTaskRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.post('/v1/tasks/:id/retry', {
      operationId: 'retryTask',
      summary: 'Retry a dead task',
      description:
        'The task keeps its id and waits behind the other tasks of its queue. It gets all attempts of its retry policy ' +
        'again, and its total timeout starts again. Its fencing token continues to increase, and finished steps are not run ' +
        'again. The limits of the queue do not apply, but the rates of the API key do, over all queues and in each queue: the task takes a ' +
        'token, and so does each follow-up that its call has named. With `input`, the task runs with a new input. With `queue`, a copy of the ' +
        "task is enqueued in that queue instead, with a new id and its definition's timeouts and backoff, and the dead task stays " +
        "dead. The copy's `retryOf` is the id of the dead task. If another request retries or deletes the dead task at the same " +
        'moment, the copy is enqueued all the same. The request is idempotent if it has an `id`.',
      params: taskIdParams,
      body: retryOneSchema,
      bodyRequired: false,
      responses: { 200: { description: 'The task, or its copy, will run.', schema: retriedSchema } },
      problems: [
        'task_not_found',
        'task_not_dead',
        'already_compensated',
        'unknown_task',
        'invalid_input',
        'invalid_follow_up',
        'queue_not_found',
        'queue_draining',
        'fleet_too_old',
        'enqueue_rate_exceeded',
        'queue_full',
        'redis_full',
        'unsafe_redis',
        'redis_unavailable',
      ],
      handle: (call) => retryTask(context, call),
    }),
    routes.delete('/v1/tasks/:id', {
      operationId: 'deleteTask',
      summary: 'Delete a dead task',
      description: 'Deletes the task with its input, attempts and steps. A repeated request gets `task_not_found`.',
      params: taskIdParams,
      query: deleteOneQuerySchema,
      responses: { 200: { description: 'The task is deleted.', schema: deletedSchema } },
      problems: ['task_not_found', 'task_not_dead', 'redis_unavailable'],
      handle: (call) => deleteTask(context, call),
    }),
    routes.get('/v1/dead-tasks', {
      operationId: 'searchDeadTasks',
      summary: "Search a queue's dead tasks",
      description:
        'Returns the dead tasks that match every parameter, newest first. One request examines at most 2,000 tasks, or those of ' +
        'one `fingerprint`, so a page may be short or empty although more pages follow. Follow `next` until it is absent.',
      query: deadQuerySchema,
      responses: { 200: { description: 'One page.', schema: taskPageSchema } },
      problems: ['invalid_cursor', 'queue_not_found', 'redis_unavailable'],
      handle: (call) => searchDeadTasks(context, call),
    }),
    routes.get('/v1/dead-tasks/fingerprints', {
      operationId: 'countFingerprints',
      summary: 'Count dead tasks by kind of error',
      description:
        'Two errors have the same fingerprint if their state, code, message and top three stack frames agree. E-mail addresses and ' +
        'words that contain a digit, such as ids, are ignored. The largest count comes first.',
      query: fingerprintsQuerySchema,
      responses: { 200: { description: 'The counts.', schema: fingerprintCountsSchema } },
      problems: ['queue_not_found', 'redis_unavailable'],
      handle: (call) => countFingerprints(context, call),
    }),
    routes.post('/v1/dead-tasks/retry', {
      operationId: 'retryDeadTasks',
      summary: 'Retry all dead tasks that match a filter',
      description:
        'Retries the dead tasks of a queue that match every field and died before the request, oldest first, at `rate` tasks per ' +
        'second. The API stores the request, and the leader carries it out. Each task is retried once, even if it dies again or ' +
        'processes are killed in the meantime. Cancelled and expired tasks are never retried. With `?dryRun=true`, the API returns ' +
        'the number of matching tasks without retrying them. The request is not idempotent: a second one also retries tasks that ' +
        'have died since the first.',
      ...CHANGE,
      handle: (call) => changeDeadTasks(context, 'retry', call),
    }),
    routes.post('/v1/dead-tasks/delete', {
      operationId: 'deleteDeadTasks',
      summary: 'Delete all dead tasks that match a filter',
      description:
        'Deletes the dead tasks of a queue that match every field and died before the request, oldest first, at `rate` tasks per ' +
        'second. The API stores the request, and the leader carries it out. With `?dryRun=true`, the API returns the number of ' +
        'matching tasks without deleting them. The request is not idempotent: a second one also deletes tasks that have died since ' +
        'the first.',
      ...CHANGE,
      handle: (call) => changeDeadTasks(context, 'delete', call),
    }),
    routes.get('/v1/dead-tasks/requests', {
      operationId: 'listDeadTaskRequests',
      summary: 'List the retries and deletes by filter',
      description:
        'Returns who has retried or deleted dead tasks by filter, and how many, newest request first. A request is listed until ' +
        'seven days after it is done, if it is among the newest 1,000 of its queue.',
      query: deadRequestsQuerySchema,
      responses: { 200: { description: 'The requests.', schema: deadRequestPageSchema } },
      problems: ['queue_not_found', 'redis_unavailable'],
      handle: (call) => listDeadRequests(context, call),
    }),
    routes.get('/v1/dead-tasks/requests/:id', {
      operationId: 'showDeadTaskRequest',
      summary: 'Show the progress of a retry or a delete by filter',
      description: 'The progress remains available for seven days after the request is done.',
      params: z.object({ id: z.string().describe("The request's id.") }),
      responses: { 200: { description: 'The request.', schema: deadRequestSchema } },
      problems: ['dead_task_request_not_found', 'redis_unavailable'],
      handle: (call) => showDeadRequest(context, call),
    }),
    routes.post('/v1/dead-tasks/requests/:id/stop', {
      operationId: 'stopDeadTaskRequest',
      summary: 'Stop a retry or a delete by filter',
      description:
        'Once the API has responded, no further task is retried or deleted. Tasks that were already retried or deleted are not reverted. The ' +
        'response contains the final progress. The request is idempotent: a retry or a delete that is done or stopped stays as it is.',
      params: z.object({ id: z.string().describe("The request's id.") }),
      body: stopDeadSchema,
      bodyRequired: false,
      responses: {
        200: { description: 'The request, which is stopped or was already done.', schema: deadRequestSchema },
      },
      problems: ['redis_unavailable', 'dead_task_request_not_found'],
      handle: (call) => stopDeadRequest(context, call),
    }),
  ]
}
