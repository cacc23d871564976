// Defines how dead tasks are retried and deleted over HTTP.
import { z } from 'zod'
import { COMMAND_ID } from '../fleet/commands.ts'
import { TASK_STATUSES } from '../task/states.ts'
import { linksSchema } from './task-view.ts'

const by = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe("Who sends the request, for the audit log. The API adds the API key's fingerprint.")

const id = z
  .string()
  .regex(COMMAND_ID, 'expected 1 to 64 letters, digits, _ or -')
  .optional()
  .describe(
    'Makes the request idempotent: a request with the same id has no further effect. By default, the API generates an id.',
  )

/** The body of POST /v1/tasks/{id}/retry, which is optional. */
export const retryOneSchema = z
  .strictObject({
    id,
    by,
    input: z
      .unknown()
      .optional()
      .describe("Replaces the task's input. It must match the task's contract. By default, the input stays unchanged."),
  })
  .meta({ id: 'RetryOne' })

/** Options of a retry of one dead task. */
export interface RetryOneRequest {
  readonly id?: string
  /** Who retries the task, for the task's history and the audit log. */
  readonly by?: string
  /** Replaces the task's input. By default, the input stays unchanged. */
  readonly input?: unknown
}

export const retriedSchema = z
  .object({
    id: z.string(),
    status: z.enum(TASK_STATUSES).describe("The task's status after the retry."),
    links: linksSchema,
  })
  .meta({ id: 'Retried' })

export type Retried = z.infer<typeof retriedSchema>

/** The query parameters of DELETE /v1/tasks/{id}. */
export const deleteOneQuerySchema = z.strictObject({ by })

export const deletedSchema = z.object({ id: z.string() }).meta({ id: 'Deleted' })

export type Deleted = z.infer<typeof deletedSchema>
