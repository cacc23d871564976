// Defines the query parameters for waiting and pagination.
import { z } from 'zod'
import { TASK_STATUSES } from '../task/states.ts'

/** The longest time, in seconds, that a request may wait for a result. */
export const MAX_WAIT_S = 30

/** The maximum and the default number of entries per page. */
export const PAGINATION = { max: 200, default: 50 } as const

/**
 * Returns the schema for a whole number in a query string. It accepts only decimal digits, so '0x10' and ' ' are rejected. The same
 * message covers a wrong format and a wrong range.
 */
const numberText = (form: RegExp, min: number, max: number, expected: string) =>
  z.string().regex(form, expected).transform(Number).pipe(z.int(expected).min(min, expected).max(max, expected))

/** The schema of a query parameter that is `true` or `false`, by default the latter. */
export const flagText = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true')
  .pipe(z.boolean())

const EXPECTED_WAIT = `expected a duration such as '10s', or a number of seconds, from 0 to ${MAX_WAIT_S} s`

/** Returns the number of seconds. Accepts '10', '10s', '0.5s' and '500ms'. */
export const waitSchema = z
  .string()
  .regex(/^\d{1,5}(\.\d{1,3})?(ms|s)?$/, EXPECTED_WAIT)
  .transform((text) => Number.parseFloat(text) / (text.endsWith('ms') ? 1_000 : 1))
  .pipe(z.number(EXPECTED_WAIT).min(0, EXPECTED_WAIT).max(MAX_WAIT_S, EXPECTED_WAIT))

/** The query of POST /v1/tasks. */
export const enqueueQuerySchema = z.strictObject({
  wait: waitSchema
    .optional()
    .describe(
      "How long to wait for the task to end, such as '10s', at most 30 s. If the task ends in time, the response contains the task.",
    ),
  onDisconnect: z
    .enum(['continue', 'cancel'])
    .optional()
    .describe(
      'What happens to the task if the caller disconnects during the wait. With `cancel`, the API cancels the task unless ' +
        'another request created it. Defaults to `continue`. Requires `wait` or the header `Prefer: wait`.',
    ),
})

export const limitSchema = numberText(
  /^\d{1,6}$/,
  1,
  PAGINATION.max,
  `expected a whole number from 1 to ${PAGINATION.max}`,
).default(PAGINATION.default)

/** A cursor contains the id of a task, which BullMQ lets other programs choose freely. */
const MAX_CURSOR_LENGTH = 2_048

export const cursorSchema = z.string().max(MAX_CURSOR_LENGTH)

export const listQuerySchema = z.strictObject({
  queue: z.string(),
  status: z.enum(TASK_STATUSES),
  limit: limitSchema,
  cursor: cursorSchema.optional(),
})
