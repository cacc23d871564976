// How one start of a task ended: the record that is stored with the task and shown by the API.
import { z } from 'zod'
import { ATTEMPT_END_STATES, END_REASONS } from './states.ts'

const reasons = Object.values(END_REASONS).flat()

/** Times are milliseconds since 1970. */
export const attemptRecordSchema = z.object({
  /** 0: it never started; an expired task that nobody took. */
  fencingToken: z.int().nonnegative(),
  attempt: z.int().positive(),
  state: z.enum(ATTEMPT_END_STATES),
  /** For every end but DONE_SUCCESS and DONE_ERROR. */
  reason: z.enum(reasons).optional(),
  /** The declared failure's own code; for DONE_ERROR. */
  code: z.string().optional(),
  message: z.string().optional(),
  /** The worker process that ran it: host and process id. */
  worker: z.string(),
  /** Which of the pool's workers, from 1. */
  slot: z.int().positive().optional(),
  startedAt: z.int(),
  endedAt: z.int(),
})

export type AttemptRecord = z.infer<typeof attemptRecordSchema>
