// Represents errors over HTTP as problem details (RFC 9457), and defines the status and title for each error code.
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../errors/errors.ts'
import { fieldErrorSchema } from '../errors/field-error.ts'

/** The HTTP status for each code. Errors that a caller cannot cause have status 500. */
export const HTTP_STATUS = {
  malformed_json: 400,
  invalid_request: 400,
  unknown_task: 422,
  invalid_input: 422,
  payload_too_large: 413,
  unsupported_media_type: 415,
  request_timeout: 408,
  invalid_cursor: 400,
  unauthorized: 401,
  forbidden: 403,
  task_not_found: 404,
  cancel_not_found: 404,
  task_not_dead: 409,
  dead_task_request_not_found: 404,
  queue_not_found: 404,
  worker_not_found: 404,
  command_not_found: 404,
  schedule_not_found: 404,
  schedule_name_taken: 409,
  command_id_reused: 422,
  idempotency_key_reused: 422,
  unique_key_taken: 409,
  route_not_found: 404,
  method_not_allowed: 405,
  redis_unavailable: 503,
  redis_full: 503,
  idempotency_full: 503,
  unsafe_redis: 503,
  too_many_cancels: 429,
  too_many_dead_task_requests: 429,
  unsupported_redis: 500,
  incompatible_schema: 500,
  queue_draining: 503,
  queue_full: 429,
  enqueue_rate_exceeded: 429,
  shutting_down: 503,
  internal_error: 500,
  invalid_definition: 500,
  invalid_duration: 422,
  invalid_configuration: 500,
  invalid_handler: 500,
  isolation_unavailable: 500,
  illegal_transition: 500,
  wrong_state: 409,
  duplicate_child_key: 500,
  invalid_result: 500,
  unreadable_envelope: 500,
  unreadable_payload: 500,
  lock_lost: 500,
} as const satisfies Record<ErrorCode, number>

/** The title for each code. A response's `detail` contains the specifics. */
export const PROBLEM_TITLES = {
  malformed_json: 'Malformed JSON',
  invalid_request: 'Invalid request',
  unknown_task: 'Unknown task',
  invalid_input: "Input does not match the task's contract",
  payload_too_large: 'Request body too large',
  unsupported_media_type: 'Unsupported media type',
  request_timeout: 'Request timed out',
  invalid_cursor: 'Invalid cursor',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  task_not_found: 'Task not found',
  cancel_not_found: 'Cancel not found',
  task_not_dead: 'Task is not dead',
  dead_task_request_not_found: 'Dead-task request not found',
  queue_not_found: 'Queue not found',
  worker_not_found: 'Worker not found',
  command_not_found: 'Command not found',
  schedule_not_found: 'Schedule not found',
  schedule_name_taken: 'Schedule name taken',
  command_id_reused: 'Command id already used',
  idempotency_key_reused: 'Idempotency key already used',
  unique_key_taken: 'Unique key taken',
  route_not_found: 'No such route',
  method_not_allowed: 'Method not allowed',
  redis_unavailable: 'Redis unavailable',
  redis_full: 'Redis is full',
  idempotency_full: 'No memory for idempotency keys',
  unsafe_redis: 'Redis may delete tasks',
  too_many_cancels: 'Too many unfinished cancellations',
  too_many_dead_task_requests: 'Too many unfinished dead-task requests',
  unsupported_redis: 'Unsupported version of Redis',
  incompatible_schema: 'Incompatible data in Redis',
  queue_draining: 'Queue is draining',
  queue_full: 'Queue is full',
  enqueue_rate_exceeded: 'Rate of the API key exceeded',
  shutting_down: 'API is shutting down',
  internal_error: 'Internal error',
  invalid_definition: 'Invalid task definition',
  invalid_duration: 'Invalid duration',
  invalid_configuration: 'Invalid configuration',
  invalid_handler: 'Invalid handler',
  isolation_unavailable: 'Isolation unavailable',
  illegal_transition: 'Illegal state transition',
  wrong_state: 'Not possible in this state',
  duplicate_child_key: 'Duplicate child key',
  invalid_result: 'Invalid result',
  unreadable_envelope: 'Unreadable task envelope',
  unreadable_payload: 'Unreadable task payload',
  lock_lost: 'Lock lost',
} as const satisfies Record<ErrorCode, string>

export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

export const problemSchema = z
  .object({
    type: z.string().describe('A URI reference that identifies the kind of problem: /problems/<code>.'),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    code: z.enum(ERROR_CODES).describe('The kind of problem, for programs. `title` and `detail` may change.'),
    requestId: z
      .string()
      .optional()
      .describe("The request's id, which is also in the X-Request-Id header and in the logs."),
    errors: z.array(fieldErrorSchema).optional().describe('The invalid parts of the request, at most 20.'),
    taskId: z
      .string()
      .optional()
      .describe(
        'Present when an enqueue fails with `redis_unavailable` or `unique_key_taken`. With `redis_unavailable`, the task may have been stored under this id, so look it up before sending it again; after an atomic bulk request, it is the id of the first task, and either all tasks are stored or none. With `unique_key_taken`, the task with this id has the unique key.',
      ),
  })
  .meta({ id: 'Problem' })

export type Problem = z.infer<typeof problemSchema>
