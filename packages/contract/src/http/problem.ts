// Errors over HTTP as problem details (RFC 9457), and the one table that gives each code its status.
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../errors/errors.ts'

/** HTTP status by code. What a caller can't cause is a 500. */
export const HTTP_STATUS = {
  malformed_json: 400,
  invalid_request: 400,
  unknown_task: 422,
  invalid_input: 422,
  payload_too_large: 413,
  unsupported_media_type: 415,
  invalid_cursor: 400,
  unauthorized: 401,
  forbidden: 403,
  task_not_found: 404,
  cancel_not_found: 404,
  queue_not_found: 404,
  worker_not_found: 404,
  command_not_found: 404,
  command_id_reused: 422,
  route_not_found: 404,
  method_not_allowed: 405,
  redis_unavailable: 503,
  queue_draining: 503,
  shutting_down: 503,
  internal_error: 500,
  invalid_definition: 500,
  invalid_duration: 422,
  invalid_configuration: 500,
  invalid_handler: 500,
  isolation_unavailable: 500,
  illegal_transition: 500,
  wrong_state: 409,
  duplicate_key: 500,
  invalid_result: 500,
  unreadable_envelope: 500,
  lock_lost: 500,
} as const satisfies Record<ErrorCode, number>

export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

export const problemSchema = z
  .object({
    type: z.string().describe('A URI reference that names the kind of problem: /problems/<code>.'),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    instance: z.string().optional().describe('The request, by its id.'),
    code: z.enum(ERROR_CODES).describe('What programs decide by.'),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('Each place in the input that is wrong.'),
    taskId: z
      .string()
      .optional()
      .describe('With redis_unavailable on POST: the id to look up later, since the task may have been accepted.'),
  })
  .meta({ id: 'Problem' })

export type Problem = z.infer<typeof problemSchema>
