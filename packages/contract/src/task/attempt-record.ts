// How one attempt ended: the record that is stored with the task and shown by the API.
import { z } from 'zod'
import { ATTEMPT_END_STATES, END_REASONS } from './states.ts'

const reasons = Object.values(END_REASONS).flat()

/** Times are milliseconds since 1970. */
export const attemptRecordSchema = z.object({
  /** 0 when no handler was started: the task was cancelled or expired first. */
  fencingToken: z.int().nonnegative(),
  /** From 1. Attempts that do not count share their number with the one that follows. */
  attempt: z.int().positive(),
  /**
   * Whether the attempt counts against the retry policy. False when a drain, a snooze or a rate limit ended it, and when no
   * handler was started.
   */
  counted: z.boolean(),
  state: z.enum(ATTEMPT_END_STATES),
  /** For every state but DONE_SUCCESS and DONE_ERROR. */
  reason: z.enum(reasons).optional(),
  /** The declared failure's own code; for DONE_ERROR. */
  code: z.string().optional(),
  message: z.string().optional(),
  /** Who cancelled the task, where that is known; for TERMINATED_STOP_SIGNAL. */
  by: z.string().optional(),
  /** The worker that ran it: host and process id. */
  worker: z.string(),
  /** Which slot of the pool, from 1. */
  slot: z.int().positive().optional(),
  startedAt: z.int(),
  endedAt: z.int(),
})

export type AttemptRecord = z.infer<typeof attemptRecordSchema>
