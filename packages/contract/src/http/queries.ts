// Defines the query parameters for waiting and pagination.
import { z } from 'zod'
import { TASK_STATUSES } from '../task/states.ts'

/** The longest time, in seconds, that a request may wait for a result. */
export const MAX_WAIT_S = 30

/** The maximum and the default number of entries per page. */
export const PAGINATION = { max: 200, default: 50 } as const

/**
 * Returns the schema for a number in a query string. It accepts only decimal digits, so '0x10' and ' ' are rejected. The same
 * message covers a wrong format and a wrong range.
 */
const numberText = (form: RegExp, min: number, max: number, expected: string) =>
  z.string().regex(form, expected).transform(Number).pipe(z.number(expected).min(min, expected).max(max, expected))

export const waitSchema = numberText(
  /^\d{1,3}(\.\d{1,3})?$/,
  0,
  MAX_WAIT_S,
  `expected a number of seconds from 0 to ${MAX_WAIT_S}`,
)

export const limitSchema = numberText(
  /^\d{1,6}$/,
  1,
  PAGINATION.max,
  `expected a whole number from 1 to ${PAGINATION.max}`,
).default(PAGINATION.default)

export const listQuerySchema = z.strictObject({
  queue: z.string(),
  status: z.enum(TASK_STATUSES),
  limit: limitSchema,
  cursor: z.string().max(256).optional(),
})
