// A task as the API shows it. Times are RFC 3339 in UTC.
import { z } from 'zod'
import { ATTEMPT_END_STATES, ATTEMPT_STATE_LABELS, TASK_STATUSES } from '../task/states.ts'

export const linksSchema = z.object({ self: z.string(), cancel: z.string() })

const time = z.iso.datetime()
const errorSchema = z.object({ code: z.string(), message: z.string() })

/** What people read for each end of an attempt. */
export const ATTEMPT_OUTCOMES = ATTEMPT_END_STATES.map((state) => ATTEMPT_STATE_LABELS[state])

export const attemptViewSchema = z
  .object({
    attempt: z.int().describe('From 1. An attempt that does not count has the number of the one after it.'),
    fencingToken: z.int().describe('Grows with every start of a handler; 0 if none was started.'),
    counted: z.boolean().describe('Whether the attempt counts against `maxAttempts`.'),
    outcome: z.enum(ATTEMPT_OUTCOMES),
    state: z.enum(ATTEMPT_END_STATES).describe('The final state of the attempt, of which `outcome` is the label.'),
    error: errorSchema.optional().describe('Why the attempt did not succeed.'),
    by: z.string().optional().describe('Who cancelled the task, where that is known.'),
    worker: z
      .string()
      .describe('The worker that ran the attempt, or the process that ended the task before it started.'),
    slot: z.int().optional().describe("The number of the slot in the worker's pool, from 1."),
    startedAt: time,
    endedAt: time,
  })
  .meta({ id: 'Attempt' })

export type AttemptView = z.infer<typeof attemptViewSchema>

export const taskViewSchema = z
  .object({
    id: z.string(),
    task: z.string(),
    version: z.int(),
    queue: z.string(),
    status: z.enum(TASK_STATUSES),
    attemptsMade: z.int().describe('Attempts that count against `maxAttempts`.'),
    maxAttempts: z.int(),
    fencingToken: z.int().describe('How often a handler has been started.'),
    input: z.unknown(),
    output: z.unknown().optional().describe('Only of a completed task.'),
    error: errorSchema.optional().describe('Why the task is dead or expired, or why its newest attempt failed.'),
    progress: z.object({ fraction: z.number(), note: z.string().optional() }).optional(),
    steps: z.array(z.string()).optional().describe('The names of the finished steps.'),
    meta: z.record(z.string(), z.string()),
    tags: z.array(z.string()),
    correlationId: z.string().optional(),
    enqueuedAt: time,
    dueAt: time.optional().describe('The next start of a scheduled or retrying task.'),
    startedAt: time.optional().describe('The start of the newest attempt.'),
    endedAt: time.optional().describe('When the task reached its final status.'),
    attempts: z
      .array(attemptViewSchema)
      .describe('The attempts that have ended, oldest first; at most the newest ten.'),
    links: linksSchema,
  })
  .meta({ id: 'Task' })

export type TaskView = z.infer<typeof taskViewSchema>

export const taskPageSchema = z
  .object({
    tasks: z.array(taskViewSchema),
    next: z.string().optional().describe('The cursor of the next page; absent on the last page.'),
  })
  .meta({ id: 'TaskPage' })

export type TaskPage = z.infer<typeof taskPageSchema>
