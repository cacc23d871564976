// Query parameters: waiting and pagination.
import { z } from 'zod'
import { TASK_STATUSES } from '../task/states.ts'

/** The longest time, in seconds, that a request may wait for a result. */
export const MAX_WAIT_S = 30

/** How many entries a page holds: at most, and by default. */
export const PAGINATION = { max: 200, default: 50 } as const

/** Decimal digits only: '0x10' and ' ' are refused. A value outside of the range has the same message as one of another form. */
const numberText = (form: RegExp, min: number, max: number, expected: string) =>
  z.string().regex(form, expected).transform(Number).pipe(z.number(expected).min(min, expected).max(max, expected))

export const waitSchema = numberText(
  /^\d{1,3}(\.\d{1,3})?$/,
  0,
  MAX_WAIT_S,
  `must be a number of seconds between 0 and ${MAX_WAIT_S}`,
)

export const limitSchema = numberText(
  /^\d{1,6}$/,
  1,
  PAGINATION.max,
  `must be a whole number between 1 and ${PAGINATION.max}`,
).default(PAGINATION.default)

export const listQuerySchema = z.strictObject({
  queue: z.string(),
  status: z.enum(TASK_STATUSES),
  limit: limitSchema,
  cursor: z.string().max(256).optional(),
})
