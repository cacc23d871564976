// Defines POST /v1/tasks/bulk: the request body, which contains the bodies of several enqueues, and the response.
import { z } from 'zod'
import { groupedDigits } from '../../definition/units/grouped-digits.ts'
import { problemSchema } from '../problem.ts'
import { acceptedSchema, droppedSchema, type EnqueueRequest, type enqueueBodySchema } from './enqueue.ts'

/** The maximum number of tasks in one request. */
export const MAX_BULK_TASKS = 1_000

/**
 * The maximum number of tasks in an atomic request. Redis cannot run anything else during the script that stores them, so the
 * script must not take longer than 25 ms. For 250 tasks, we measured this CPU time in Redis, as the smallest and the median of 60
 * calls on a busy machine: 5 and 5 ms without options, 7 and 11 ms with idempotency keys, 9 and 13 ms with idempotency keys and
 * the queue's limits, and 18 and 25 ms with all of these, tags, a delay, and 8 kB for each task. Unique keys are not allowed.
 */
export const MAX_ATOMIC_TASKS = 250

/** Returns the schema of a body whose tasks match `task`. */
function bodySchema<T extends z.ZodType>(task: T) {
  return z.strictObject({
    tasks: z
      .array(task)
      .min(1)
      .max(MAX_BULK_TASKS)
      .describe(`From 1 to ${groupedDigits(MAX_BULK_TASKS)} tasks, each like the body of POST /v1/tasks.`),
    atomic: z
      .boolean()
      .optional()
      .describe(
        `Whether to store either all of the tasks or none. The tasks must belong to one queue and must not have unique keys, and there may be at most ${MAX_ATOMIC_TASKS}. Defaults to false.`,
      ),
  })
}

/** Returns the schema of a POST /v1/tasks/bulk body. `task` is the result of {@link enqueueBodySchema}. */
export function enqueueBulkBodySchema(task: ReturnType<typeof enqueueBodySchema>) {
  return bodySchema(task).meta({ id: 'EnqueueBulk' })
}

/** The schema of a body whose tasks have not been checked yet. Each of them is checked separately. */
export const uncheckedBulkBodySchema = bodySchema(z.unknown())

/** The fields of a valid body. */
export interface EnqueueBulkRequest {
  readonly tasks: readonly EnqueueRequest[]
  readonly atomic?: boolean
}

const bulkAcceptedSchema = acceptedSchema.omit({ links: true }).extend({
  replayed: z
    .literal(true)
    .optional()
    .describe('Present if an earlier request with the same Idempotency-Key had stored this task.'),
})

const bulkRejectedSchema = z.object({
  error: problemSchema
    .omit({ requestId: true })
    .extend({
      retryAfter: z
        .int()
        .optional()
        .describe(
          'How many seconds to wait before sending the task again. Present if the status is 429 or 503. If the whole request is rejected, the header Retry-After has this number.',
        ),
    })
    .describe('The problem that POST /v1/tasks would return, with pointers such as `/tasks/3/input/n`.'),
})

export const bulkResponseSchema = z
  .object({
    failed: z.int().describe('How many of the results have an `error`.'),
    results: z
      .array(z.union([bulkAcceptedSchema, bulkRejectedSchema, droppedSchema]))
      .describe("One result for each task, in the request's order."),
  })
  .meta({ id: 'BulkResponse' })

/** The result of a task that is stored. */
export type BulkAccepted = z.infer<typeof bulkAcceptedSchema>

/**
 * The result for one task of a bulk request: the stored task, the problem, or a note that the task was dropped because its queue is
 * full.
 */
export type BulkResult = BulkAccepted | z.infer<typeof bulkRejectedSchema> | z.infer<typeof droppedSchema>

export type BulkResponse = z.infer<typeof bulkResponseSchema>
