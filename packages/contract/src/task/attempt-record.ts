// Defines the attempt record, which describes how one attempt ended. It is stored with the task and returned by the API.
import { z } from 'zod'
import { ATTEMPT_END_STATES, END_REASONS } from './states.ts'

const reasons = Object.values(END_REASONS).flat()

/** Times are in milliseconds since 1970. */
export const attemptRecordSchema = z.object({
  /** 0 if no handler was started because the task was cancelled or expired first. */
  fencingToken: z.int().nonnegative(),
  /** The attempt's number, starting from 1. An attempt that does not count has the same number as the next one. */
  attempt: z.int().positive(),
  /**
   * Whether the attempt counts against the retry policy. False if a drain, a snooze or a rate limit ended it, if its worker could not
   * run the task, or if no handler was started.
   */
  counted: z.boolean(),
  state: z.enum(ATTEMPT_END_STATES),
  /** Present for every state except DONE_SUCCESS and DONE_ERROR. */
  reason: z.enum(reasons).optional(),
  /** For DONE_ERROR, the code of the declared failure. */
  code: z.string().optional(),
  message: z.string().optional(),
  /** For TERMINATED_STOP_SIGNAL, who cancelled the task, if known. */
  by: z.string().optional(),
  /** The host and process id of the worker that ran the attempt. */
  worker: z.string(),
  /** The slot's number in its pool, starting from 1. */
  slot: z.int().positive().optional(),
  startedAt: z.int(),
  endedAt: z.int(),
})

export type AttemptRecord = z.infer<typeof attemptRecordSchema>
