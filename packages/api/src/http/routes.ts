// The API's routes, as a table: the server registers them and the OpenAPI document describes them.
import {
  acceptedSchema,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  enqueueBodySchema,
  listQuerySchema,
  taskPageSchema,
  taskViewSchema,
  waitSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { cancelTask } from '../handlers/cancel-task.ts'
import { cancelTasks, showCancel } from '../handlers/cancel-tasks.ts'
import { enqueueTask } from '../handlers/enqueue-task.ts'
import { listTasks } from '../handlers/list-tasks.ts'
import { type LoginOptions, logIn, loginQuerySchema } from '../handlers/log-in.ts'
import { reportAlive, reportReady } from '../handlers/report-health.ts'
import { showTask } from '../handlers/show-task.ts'
import type { ApiContext } from './context.ts'
import { fleetRoutes } from './fleet-routes.ts'
import { type Route, route } from './route.ts'

const REQUEST_ID_HEADERS = [
  { name: 'X-Request-Id', description: 'Follows the request through its answer, its log lines and its task.' },
  { name: 'traceparent', description: "W3C Trace Context; its trace id is used where X-Request-Id isn't given." },
]

const healthSchema = (status: 'alive' | 'ready') => z.object({ status: z.literal(status) })

export function routeTable(context: ApiContext, login: LoginOptions): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/v1/tasks',
      access: 'key',
      tag: 'Tasks',
      operationId: 'enqueueTask',
      summary: 'Enqueue a task',
      description:
        "Stores the task in Redis and answers with its id. The input is checked against the task's contract here, and " +
        'stored as it was sent. With `redis_unavailable` the task may have been stored all the same: look it up by the ' +
        "problem's `taskId` before sending it again.",
      body: enqueueBodySchema(context.catalogue),
      headers: REQUEST_ID_HEADERS,
      answers: {
        202: {
          description: 'Stored.',
          schema: acceptedSchema,
          headers: [{ name: 'Location', description: 'Where the task is.' }],
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
      summary: 'Look a task up, or wait for its end',
      description:
        'With `?wait=SECONDS` (at most 30), or with the header `Prefer: wait=SECONDS`, the answer comes as soon as the ' +
        "task's status is final, and with the task as it stands when the time is up: look at `status`.",
      params: z.object({ id: z.string().describe("The task's id.") }),
      query: z.strictObject({ wait: waitSchema.optional().describe('Seconds to wait for the end: 0 to 30.') }),
      headers: [
        { name: 'Prefer', description: '`wait=SECONDS` (RFC 7240); more than 30 counts as 30.' },
        ...REQUEST_ID_HEADERS,
      ],
      answers: {
        200: {
          description: 'The task.',
          schema: taskViewSchema,
          headers: [{ name: 'Preference-Applied', description: '`wait=SECONDS`, where the header was honoured.' }],
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
        'A task that waits, is scheduled or is retrying ends at once, and never runs. One that runs is told: its handler has ' +
        'its grace to leave, and is killed after it where it is isolated. The request outlives the process that has the ' +
        'task. With `?wait=SECONDS` the answer comes when the task has ended. Twice is once.',
      params: z.object({ id: z.string().describe("The task's id.") }),
      query: z.strictObject({ wait: waitSchema.optional().describe('Seconds to wait for the end: 0 to 30.') }),
      headers: REQUEST_ID_HEADERS,
      answers: { 200: { description: 'What the request came to: look at `outcome`.', schema: cancelledSchema } },
      problems: ['invalid_request', 'unauthorized', 'task_not_found', 'redis_unavailable'],
      handle: cancelTask(context),
    }),
    route({
      method: 'POST',
      path: '/v1/tasks/cancel',
      access: 'key',
      tag: 'Tasks',
      operationId: 'cancelTasks',
      summary: 'Cancel tasks by queue, name, tag and age',
      description:
        'Covers the tasks of a queue that fit all that is given and were enqueued until now. When the answer comes, none of ' +
        'them starts any more, and each is shown as `cancelled`; to move them out of where they wait takes longer. Long ' +
        'ones that run are told to stop; short ones that run go on, and are not tried again. Tasks that are enqueued later are ' +
        'not covered. Takes up to 2.5 s when a worker does not answer.',
      body: cancelFilterSchema,
      headers: REQUEST_ID_HEADERS,
      answers: {
        202: {
          description: 'None that it covers starts any more.',
          schema: cancellationSchema,
          headers: [{ name: 'Location', description: 'Where it is told how far it is.' }],
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
      handle: cancelTasks(context),
    }),
    route({
      method: 'GET',
      path: '/v1/cancels/:id',
      access: 'browser',
      tag: 'Tasks',
      operationId: 'showCancel',
      summary: 'Look up how far a cancel by filter is',
      description: 'It is told of until a day after it was done.',
      params: z.object({ id: z.string().describe("The cancel's id.") }),
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
      summary: "List a queue's tasks in one status",
      description:
        "The order is that of the set in Redis that holds the status. A task that changes its status between two pages' " +
        'requests leaves the listing: it may be missed here, and seen in the listing of its new status, or, when it ' +
        'returns, be seen twice; no listing ever shows a task that is not there. Follow `next` until it is absent.',
      query: listQuerySchema,
      headers: REQUEST_ID_HEADERS,
      answers: { 200: { description: 'One page.', schema: taskPageSchema } },
      problems: ['invalid_request', 'invalid_cursor', 'unauthorized', 'queue_not_found', 'redis_unavailable'],
      handle: listTasks(context),
    }),
    ...fleetRoutes(context),
    route({
      method: 'GET',
      path: '/board/login',
      access: 'open',
      tag: 'Browser',
      operationId: 'logIn',
      summary: 'Open the board or the reference in a browser',
      description: 'Sets a cookie for 12 hours with which a browser may look at everything and change nothing.',
      query: loginQuerySchema,
      answers: { 303: { description: 'Logged in.', schema: z.undefined() } },
      problems: ['invalid_request', 'unauthorized'],
      handle: logIn(login),
    }),
    route({
      method: 'GET',
      path: '/livez',
      access: 'open',
      tag: 'Probes',
      operationId: 'livez',
      summary: 'Whether this process is alive',
      answers: { 200: { description: 'Alive.', schema: healthSchema('alive') } },
      problems: [],
      handle: reportAlive(),
    }),
    route({
      method: 'GET',
      path: '/readyz',
      access: 'open',
      tag: 'Probes',
      operationId: 'readyz',
      summary: 'Whether this process takes requests',
      answers: {
        200: { description: 'Redis answers, and the process is not shutting down.', schema: healthSchema('ready') },
      },
      problems: ['redis_unavailable', 'shutting_down'],
      handle: reportReady(context),
    }),
  ]
}
