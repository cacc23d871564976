// Defines a task as the API returns it. Times are in RFC 3339 format and UTC.
import { z } from 'zod'
import { FOLLOW_UP_KINDS } from '../../task/follow-up.ts'
import { ATTEMPT_END_STATES, ATTEMPT_STATE_LABELS, TASK_STATUSES } from '../../task/states.ts'
import { waitViewSchema } from './wait-view.ts'

export const linksSchema = z.object({ self: z.string(), cancel: z.string() })

const time = z.iso.datetime()
const errorSchema = z.object({ code: z.string(), message: z.string() })

/** The human-readable label for each way in which an attempt can end. */
export const ATTEMPT_OUTCOMES = ATTEMPT_END_STATES.map((state) => ATTEMPT_STATE_LABELS[state])

export const attemptViewSchema = z
  .object({
    attempt: z
      .int()
      .describe(
        "The attempt's number, starting from 1. An attempt that does not count has the same number as the next one.",
      ),
    fencingToken: z
      .int()
      .describe('A number that increases each time a handler is started. 0 if no handler was started.'),
    counted: z.boolean().describe('Whether the attempt counts against `maxAttempts`.'),
    outcome: z.enum(ATTEMPT_OUTCOMES),
    state: z.enum(ATTEMPT_END_STATES).describe("The attempt's final state. `outcome` is its label."),
    error: errorSchema.optional().describe('Why the attempt did not succeed.'),
    by: z.string().optional().describe('Who cancelled the task, if known.'),
    worker: z
      .string()
      .describe('The worker that ran the attempt, or the process that ended the task before it started.'),
    slot: z.int().optional().describe("The slot's number in the worker's pool, starting from 1."),
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
    attemptsMade: z.int().describe('How many attempts have counted against `maxAttempts`.'),
    maxAttempts: z.int(),
    priority: z.int().describe('From 0 to 9. Waiting tasks with a smaller number start first.'),
    fencingToken: z.int().describe('How many times a handler has been started.'),
    input: z.unknown(),
    output: z.unknown().optional().describe('Present only if the task is completed.'),
    error: errorSchema.optional().describe('Why the task is dead or expired, or why its latest attempt failed.'),
    progress: z.object({ fraction: z.number(), note: z.string().optional() }).optional(),
    steps: z.array(z.string()).optional().describe('The names of the finished steps.'),
    meta: z.record(z.string(), z.string()),
    tags: z.array(z.string()),
    correlationId: z.string().optional(),
    traceContext: z
      .object({ traceparent: z.string(), tracestate: z.string().exactOptional() })
      .optional()
      .describe(
        'The W3C Trace Context of the request that enqueued the task or, for a child task or a follow-up, its parent.',
      ),
    concurrencyKey: z.string().optional().describe('The tenant or resource that the task belongs to.'),
    waitsFor: waitViewSchema
      .optional()
      .describe('Why the task does not run. Present while it is waiting, scheduled or retrying, but not in lists.'),
    enqueuedAt: time,
    dueAt: time.optional().describe('When a scheduled or retrying task is due to start.'),
    startedAt: time.optional().describe('When the latest attempt started.'),
    endedAt: time.optional().describe('When the task reached its final status.'),
    attempts: z.array(attemptViewSchema).describe('The last ten attempts that have ended, oldest first.'),
    fingerprint: z
      .string()
      .optional()
      .describe('Identifies the kind of error that made the task dead. Present only if the task is dead.'),
    retries: z
      .array(
        z.object({
          at: time,
          by: z.string().describe('Who retried the task.'),
          copy: z
            .string()
            .optional()
            .describe(
              'The id of the copy that was enqueued in another queue instead. Absent if the task itself was retried.',
            ),
        }),
      )
      .optional()
      .describe('The last ten retries of the task by request, oldest first.'),
    followUpOf: z
      .string()
      .optional()
      .describe('The id of the task or the group because of whose end this task was enqueued.'),
    followUps: z
      .array(z.object({ on: z.enum(FOLLOW_UP_KINDS), task: z.string(), queue: z.string() }))
      .optional()
      .describe(
        'The tasks that are enqueued when this task ends: `on` success, failure, or any end. Present until the task ends, and while it is dead, because it can be retried.',
      ),
    group: z
      .object({ id: z.string(), member: z.int().describe("The member's number, starting from 0.") })
      .optional()
      .describe('The group whose member the task is.'),
    compensations: z
      .array(z.object({ task: z.string(), key: z.string() }))
      .optional()
      .describe(
        'The tasks that undo steps of this task unless it is completed, in the order of their registration. They are enqueued in the reverse order.',
      ),
    compensatedAt: time
      .optional()
      .describe(
        'When the compensations of this task were last released. Every retry then requires `afterCompensation`, until the task is completed.',
      ),
    retryOf: z
      .string()
      .optional()
      .describe('The id of the dead task in another queue from which this task was copied.'),
    links: linksSchema.extend({
      board: z.string().optional().describe("The task's page on Bull Board. Present only if the API serves the board."),
    }),
  })
  .meta({ id: 'Task' })

export type TaskView = z.infer<typeof taskViewSchema>

export const taskPageSchema = z
  .object({
    tasks: z.array(taskViewSchema),
    next: z.string().optional().describe('The cursor of the next page. Absent on the last page.'),
  })
  .meta({ id: 'TaskPage' })

export type TaskPage = z.infer<typeof taskPageSchema>
