// Defines the routes that enqueue, look up, list and cancel tasks.
import {
  acceptedSchema,
  bulkResponseSchema,
  cancelFilterSchema,
  cancellationSchema,
  cancelledSchema,
  cancelManyQuerySchema,
  cancelOneQuerySchema,
  cancelOneSchema,
  cancelPreviewSchema,
  droppedSchema,
  enqueueBodySchema,
  enqueueBulkBodySchema,
  enqueueQuerySchema,
  IDEMPOTENCY_KEY_FORM,
  listQuerySchema,
  taskPageSchema,
  taskViewSchema,
  uncheckedBulkBodySchema,
  waitSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { cancelByFilter, showCancel } from '../../handlers/cancel-by-filter.ts'
import { cancelTask } from '../../handlers/cancel-task.ts'
import { enqueueBulk } from '../../handlers/enqueueing/enqueue-bulk.ts'
import { enqueueTask } from '../../handlers/enqueueing/enqueue-task.ts'
import { listTasks } from '../../handlers/list-tasks.ts'
import { showTask } from '../../handlers/show-task.ts'
import type { ApiContext } from '../context.ts'
import { ORIGIN_HEADERS, taskIdParams } from './request-parts.ts'
import { type Route, routesOf } from './route.ts'

/** The problems that the API may return for any request that enqueues tasks. */
const PROBLEMS_OF_ENQUEUE = [
  'unknown_task',
  'invalid_input',
  'invalid_follow_up',
  'idempotency_key_reused',
  'queue_draining',
  'fleet_too_old',
  'queue_full',
  'enqueue_rate_exceeded',
  'not_replicated',
  'redis_full',
  'idempotency_full',
  'unsafe_redis',
  'redis_unavailable',
] as const satisfies Route['problems']

const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  description:
    `${IDEMPOTENCY_KEY_FORM} If an earlier request with the same key, ` +
    "API key and queue was accepted, the API returns that request's response again and stores nothing. Append " +
    '`;life=SECONDS` to shorten the time for which the response is remembered.',
}

const IDEMPOTENCY_REPLAYED = {
  name: 'Idempotency-Replayed',
  description: '`true` if this is the response to an earlier request with the same Idempotency-Key.',
}

const PREFER_HEADER = { name: 'Prefer', description: '`wait=SECONDS` (RFC 7240). A value above 30 is treated as 30.' }

const PREFERENCE_APPLIED = { name: 'Preference-Applied', description: '`wait=SECONDS`, if the header was honoured.' }

const routes = routesOf({ tag: 'Tasks' })

export function taskRoutes(context: ApiContext): readonly Route[] {
  const enqueueBody = enqueueBodySchema(context.catalogue)
  return [
    routes.post('/v1/tasks', {
      operationId: 'enqueueTask',
      summary: 'Enqueue a task',
      description:
        "Validates the input against the task's contract, stores the task in Redis with its input unchanged, and " +
        'returns its id. If the request fails with `redis_unavailable`, the task may already have been stored, so ' +
        "look it up by the problem's `taskId` before you send it again. With `?wait=10s` or the header `Prefer: wait=10`, the API " +
        'returns the task as soon as it has ended. If the time runs out first, the response is 202, as it is without a wait, and ' +
        "contains the task's current `status`. If the queue is full, `whenFull` decides whether the request is rejected with " +
        '`queue_full`, is dropped, or waits for room.',
      query: enqueueQuerySchema,
      body: enqueueBody,
      headers: [IDEMPOTENCY_KEY_HEADER, PREFER_HEADER, ...ORIGIN_HEADERS],
      responses: {
        200: {
          description:
            'The task, which has ended during the wait (check its `status`), or `dropped` if the queue was full.',
          schema: z.union([taskViewSchema, droppedSchema]),
          headers: [PREFERENCE_APPLIED],
        },
        202: {
          description: 'The task is stored.',
          schema: acceptedSchema,
          location: "The task's path.",
          headers: [IDEMPOTENCY_REPLAYED],
        },
      },
      problems: [...PROBLEMS_OF_ENQUEUE, 'unique_key_taken', 'shutting_down'],
      handle: enqueueTask(context),
    }),
    routes.post('/v1/tasks/bulk', {
      operationId: 'enqueueBulk',
      summary: 'Enqueue up to 1,000 tasks',
      description:
        'Enqueues each task as POST /v1/tasks does, and returns one result for each. With `atomic`, either all tasks are stored ' +
        'or the request fails with the first problem and stores none of them. Otherwise, the tasks are independent of each other, so check ' +
        '`failed`: once the API has begun to store the tasks, the response is 200 even if tasks were rejected or Redis was ' +
        'unavailable. The request is rejected as a whole, and nothing is stored, if the request itself is invalid, if its API key ' +
        'has reached its rate over all queues or, if the request names follow-ups, in a queue of theirs, or if Redis does not respond ' +
        'while a rate is checked. If an `error` has a ' +
        '`taskId`, the task may have been stored, so look it up before you send it again. With an Idempotency-Key, repeat the ' +
        'request instead: the key and the index of a task in `tasks` together identify the task, so that only the tasks without ' +
        'a stored result are enqueued.',
      body: enqueueBulkBodySchema(enqueueBody),
      checkedBody: uncheckedBulkBodySchema,
      bodyLimit: context.bulkBodyLimit,
      headers: [IDEMPOTENCY_KEY_HEADER, ...ORIGIN_HEADERS],
      responses: { 200: { description: 'The result of each task.', schema: bulkResponseSchema } },
      problems: PROBLEMS_OF_ENQUEUE,
      handle: enqueueBulk(context, enqueueBody),
    }),
    routes.get('/v1/tasks/:id', {
      operationId: 'showTask',
      summary: 'Show a task, or wait for it to end',
      description:
        'With `?wait=SECONDS` (at most 30) or the header `Prefer: wait=SECONDS`, the API responds as soon as the ' +
        "task's status is final. If the time runs out first, the API returns the task's current state, so check " +
        '`status`.',
      params: taskIdParams,
      query: z.strictObject({
        wait: waitSchema.optional().describe('How many seconds to wait for the task to end, from 0 to 30.'),
      }),
      headers: [PREFER_HEADER, ...ORIGIN_HEADERS],
      responses: { 200: { description: 'The task.', schema: taskViewSchema, headers: [PREFERENCE_APPLIED] } },
      problems: ['task_not_found', 'redis_unavailable'],
      handle: showTask(context),
    }),
    routes.post('/v1/tasks/:id/cancel', {
      operationId: 'cancelTask',
      summary: 'Cancel a task',
      description:
        'A waiting, scheduled or retrying task ends at once and will not start. A running task receives an abort ' +
        'signal, and its handler has the grace period to stop. If an isolated handler is still running after the ' +
        'grace period, it is killed. The request is stored, so that it also reaches a worker that is cut off or ' +
        'restarting. ' +
        'With `?wait=SECONDS`, the API responds when the task has ended. The request is idempotent.',
      params: taskIdParams,
      query: cancelOneQuerySchema,
      body: cancelOneSchema,
      bodyRequired: false,
      headers: ORIGIN_HEADERS,
      responses: { 200: { description: 'The result of the request. Check its `outcome`.', schema: cancelledSchema } },
      problems: ['task_not_found', 'redis_unavailable'],
      handle: (call) => cancelTask(context, call),
    }),
    routes.post('/v1/tasks/cancel', {
      operationId: 'cancelTasks',
      summary: "Cancel a queue's tasks by name, tag and age",
      description:
        "Cancels all of a queue's tasks that match every field and were enqueued before the request. Once the API " +
        'has responded, none of these tasks will start, and all of them have the status `cancelled`, although ' +
        'moving them out of the queue takes longer. Long tasks that are running receive an abort signal. Short tasks ' +
        'that are running finish and are not retried. The request takes up to 2.5 s if a worker does not ' +
        'respond. With `?dryRun=true`, the API returns the number of matching tasks without cancelling them.',
      query: cancelManyQuerySchema,
      body: cancelFilterSchema,
      headers: ORIGIN_HEADERS,
      responses: {
        200: { description: 'The number of tasks that match now, if `dryRun` is set.', schema: cancelPreviewSchema },
        202: {
          description: 'The cancellation is in effect, and no matching task will start.',
          schema: cancellationSchema,
          location: "The path that shows this cancellation's progress.",
        },
      },
      problems: ['redis_unavailable', 'queue_not_found', 'unknown_task', 'too_many_cancels'],
      handle: (call) => cancelByFilter(context, call),
    }),
    routes.get('/v1/cancels/:id', {
      operationId: 'showCancel',
      summary: 'Show the progress of a cancel by filter',
      description: 'The progress remains available for 24 hours after the cancellation completes.',
      params: z.object({ id: z.string().describe("The cancellation's id.") }),
      headers: ORIGIN_HEADERS,
      responses: { 200: { description: 'The cancellation.', schema: cancellationSchema } },
      problems: ['cancel_not_found', 'redis_unavailable'],
      handle: (call) => showCancel(context, call),
    }),
    routes.get('/v1/tasks', {
      operationId: 'listTasks',
      summary: "List a queue's tasks that have a given status",
      description:
        'Ended tasks are returned by the time of their end, newest first. Waiting tasks are returned in the order in which they will ' +
        'start, active tasks by the time they started, and scheduled and retrying tasks by the time they are due, oldest first. If a ' +
        "task's status changes between two pages, the task leaves this listing and appears in the listing for its new status. If " +
        'the task returns to its previous status, it may appear twice. Follow `next` until it is absent.',
      query: listQuerySchema,
      headers: ORIGIN_HEADERS,
      responses: { 200: { description: 'One page.', schema: taskPageSchema } },
      problems: ['invalid_cursor', 'queue_not_found', 'redis_unavailable'],
      handle: (call) => listTasks(context, call),
    }),
  ]
}
