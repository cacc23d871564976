// Represents errors over HTTP as problem details (RFC 9457).
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../errors/errors.ts'
import { fieldErrorSchema } from '../errors/field-error.ts'

/** The codes with a status of 500 or more that show that the request had no effect. */
export const REFUSALS: readonly ErrorCode[] = [
  'unsupported_transfer_coding',
  'unsupported_http_version',
  'queue_draining',
  'fleet_too_old',
  'redis_full',
  'idempotency_full',
  'unsafe_redis',
  'shutting_down',
  // Checked before anything is sent to Redis.
  'unsupported_redis',
  'incompatible_schema',
]

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
        'Present when an enqueue fails with `redis_unavailable`, `not_replicated` or `unique_key_taken`. With `redis_unavailable`, the task may have been stored under this id, so look it up before sending it again; after an atomic bulk request, it is the id of the first task, and either all tasks are stored or none. With `not_replicated`, the task with this id is stored. With `unique_key_taken`, the task with this id has the unique key.',
      ),
    outcome: z
      .literal('refused')
      .optional()
      .describe(
        'Present if the status is 500 or more and the request is known to have had no effect: nothing was stored, so the request can safely be sent again. A request without this member may have had its effect.',
      ),
  })
  .meta({ id: 'Problem' })

export type Problem = z.infer<typeof problemSchema>
