// Defines how dead tasks are searched, counted, retried and deleted over HTTP.
import { z } from 'zod'
import { freeText, nameText } from '../definition/texts.ts'
import { COMMAND_ID } from '../fleet/commands.ts'
import { ATTEMPT_END_STATES, TASK_STATUSES } from '../task/states.ts'
import { cursorSchema, flagText, limitSchema } from './queries.ts'
import { auditedBy } from './requester.ts'
import { tagSchema } from './tasks/enqueue.ts'
import { linksSchema } from './tasks/task-view.ts'

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
    by: auditedBy,
    input: z
      .unknown()
      .optional()
      .describe("Replaces the task's input. It must match the task's contract. By default, the input stays unchanged."),
    queue: z
      .string()
      .optional()
      .describe(
        "Enqueues a copy of the task in this queue, with a new id, instead of running the task again. The dead task stays dead. Its `retries` contain the copy's id, and the copy's `retryOf` is the dead task's id.",
      ),
    afterCompensation: z
      .boolean()
      .optional()
      .describe(
        'Whether to retry even if compensations have undone steps of the task. Defaults to false, because a step whose result is stored is not run again.',
      ),
  })
  .meta({ id: 'RetryOne' })

/** Options of a retry of one dead task. */
export interface RetryOneRequest {
  readonly id?: string
  /** Who retries the task, for the task's `retries` and the audit log. */
  readonly by?: string
  /** Replaces the task's input. By default, the input stays unchanged. */
  readonly input?: unknown
  /** Enqueues a copy of the task in this queue, with a new id, instead of running the task again. The dead task stays dead. */
  readonly queue?: string
  /** Whether to retry the task even if its compensations were released. Defaults to false: such a task is refused. */
  readonly afterCompensation?: boolean
}

export const retriedSchema = z
  .object({
    id: z.string().describe("The task's id, which is new if the task was enqueued in another queue."),
    status: z.enum(TASK_STATUSES).describe("The task's status after the retry."),
    retryOf: z.string().optional().describe('The dead task, if the task was enqueued in another queue.'),
    links: linksSchema,
  })
  .meta({ id: 'Retried' })

export type Retried = z.infer<typeof retriedSchema>

/** The query parameters of DELETE /v1/tasks/{id}. */
export const deleteOneQuerySchema = z.strictObject({ by: auditedBy })

export const deletedSchema = z.object({ id: z.string() }).meta({ id: 'Deleted' })

export type Deleted = z.infer<typeof deletedSchema>

const time = z.iso.datetime()

const filterFields = {
  task: z.string().optional().describe('Only tasks of this definition.'),
  state: z.enum(ATTEMPT_END_STATES).optional().describe('Only tasks whose last attempt ended in this state.'),
  code: nameText(100).optional().describe('Only tasks with this error code, such as `http_503` or `run_timeout`.'),
  tag: tagSchema.optional().describe('Only tasks with this tag.'),
  fingerprint: z
    .string()
    .regex(/^(other|[0-9a-f]{16})$/, 'expected a fingerprint, such as 8f3a90b1c2d4e5f6')
    .optional()
    .describe('Only tasks whose error has this fingerprint, such as `8f3a90b1c2d4e5f6`.'),
  endedFrom: time.optional().describe('Only tasks that died at this time or later.'),
  endedUntil: time.optional().describe('Only tasks that died at this time or earlier.'),
  text: freeText(200)
    .min(1)
    .optional()
    .describe('Only tasks whose error message contains this text. The letters A to Z match regardless of their case.'),
}

/** Selects dead tasks of a queue. A task matches if it matches every field that is given. */
export interface DeadTaskFilter {
  readonly queue: string
  readonly task?: string
  /** The final state of the last attempt. */
  readonly state?: (typeof ATTEMPT_END_STATES)[number]
  /** The error code, such as `http_503` or `run_timeout`. */
  readonly code?: string
  readonly tag?: string
  /** The error's fingerprint: 16 hexadecimal digits, or `other`. */
  readonly fingerprint?: string
  /** The task died at this time or later, in RFC 3339 format. */
  readonly endedFrom?: string
  /** The task died at this time or earlier, in RFC 3339 format. */
  readonly endedUntil?: string
  /** A part of the error message. The letters A to Z match regardless of their case. */
  readonly text?: string
}

/** The query parameters of GET /v1/dead-tasks. */
export const deadQuerySchema = z.strictObject({
  queue: z.string(),
  ...filterFields,
  limit: limitSchema,
  cursor: cursorSchema.optional().describe("The previous page's `next`."),
})

/** The query parameters of GET /v1/dead-tasks/fingerprints. */
export const fingerprintsQuerySchema = z.strictObject({
  queue: z.string().optional().describe('Only this queue. By default, all queues are included.'),
})

/** How many dead tasks of a queue have the same fingerprint. */
export const fingerprintCountSchema = z.object({
  fingerprint: z
    .string()
    .describe(
      'Identifies the kind of error. A queue keeps at most 1,000 kinds apart, and all further kinds are counted as `other`.',
    ),
  state: z.string().describe("The final state of the tasks' last attempts."),
  code: z.string().describe('The code of the declared failure, or the reason why the last attempts ended.'),
  message: z
    .string()
    .describe('The message, with `#` in place of every e-mail address and of every word that contains a digit.'),
  count: z.int().describe('How many dead tasks have this fingerprint.'),
  oldestAt: time.describe('When the first of these tasks died.'),
  newestAt: time.describe('When the last of these tasks died.'),
  newestId: z.string().describe('The task that died last.'),
})

export const fingerprintCountsSchema = z
  .object({ fingerprints: z.array(z.object({ queue: z.string(), ...fingerprintCountSchema.shape })) })
  .meta({ id: 'FingerprintCounts' })

export type FingerprintCounts = z.infer<typeof fingerprintCountsSchema>

/** The rate at which dead tasks are retried or deleted by filter, in tasks per second. */
export const DEAD_TASK_RATE = { max: 10_000, default: 500 } as const

/** What a request does with the dead tasks that match its filter. */
export const DEAD_TASK_ACTIONS = ['retry', 'delete'] as const

export type DeadTaskAction = (typeof DEAD_TASK_ACTIONS)[number]

/** The body of POST /v1/dead-tasks/retry and POST /v1/dead-tasks/delete. A task matches if it matches every field that is given. */
export const changeDeadSchema = z
  .strictObject({
    queue: z.string(),
    ...filterFields,
    rate: z
      .int()
      .min(1)
      .max(DEAD_TASK_RATE.max)
      .optional()
      .describe(`How many tasks to change per second. Defaults to ${DEAD_TASK_RATE.default}.`),
    by: auditedBy,
    afterCompensation: z
      .boolean()
      .optional()
      .describe(
        'Whether a retry includes tasks whose compensations were released. Defaults to false: they are left as they are. A delete always includes them.',
      ),
  })
  .meta({ id: 'ChangeDeadTasks' })

/** Selects which dead tasks of a queue to retry or delete. */
export interface ChangeDeadRequest extends DeadTaskFilter {
  /** How many tasks to change per second, from 1 to 10,000. Defaults to 500. */
  readonly rate?: number
  /** Who sends the request, for the tasks' `retries` and the audit log. */
  readonly by?: string
  /** Whether a retry includes tasks whose compensations were released. Defaults to false. */
  readonly afterCompensation?: boolean
}

export const changeDeadQuerySchema = z.strictObject({
  dryRun: flagText.describe(
    'If `true`, the request changes nothing, and the response contains the number of tasks that match now.',
  ),
})

const matching = z.int().describe('How many dead tasks matched when the request was received.')
const exact = z
  .boolean()
  .describe(
    'False if the queue has more dead tasks than one request examines. In that case, `matching` is a lower bound.',
  )

export const deadPreviewSchema = z
  .object({ queue: z.string(), ...filterFields, matching, exact })
  .meta({ id: 'DeadTaskPreview', description: 'The dead tasks that a request would change.' })

export type DeadTaskPreview = z.infer<typeof deadPreviewSchema>

export const deadRequestSchema = z
  .object({
    id: z.string(),
    action: z.enum(DEAD_TASK_ACTIONS),
    queue: z.string(),
    ...filterFields,
    rate: z.int().describe('The maximum number of tasks that are changed per second.'),
    by: z.string().describe('Who sent the request.'),
    status: z.enum(['pending', 'done', 'stopped']),
    matching,
    exact,
    changed: z.int().describe('How many tasks have been retried or deleted so far.'),
    requestedAt: time.describe('When the request was stored. Only tasks that had died by then are changed.'),
    doneAt: time.optional().describe('When the last matching task was changed, or when the request was stopped.'),
    stoppedBy: z.string().optional().describe('Who stopped the request.'),
    links: z.object({ self: z.string() }),
  })
  .meta({
    id: 'DeadTaskRequest',
    description: 'A request to retry or delete all dead tasks of a queue that match a filter.',
  })

export type DeadTaskRequest = z.infer<typeof deadRequestSchema>

/** The body of POST /v1/dead-tasks/requests/{id}/stop, which is optional. */
export const stopDeadSchema = z.strictObject({ by: auditedBy }).meta({ id: 'StopDeadTaskRequest' })

/** The query parameters of GET /v1/dead-tasks/requests. */
export const deadRequestsQuerySchema = z.strictObject({
  queue: z.string().optional().describe('Only this queue. By default, all queues are included.'),
  limit: limitSchema,
})

export const deadRequestPageSchema = z
  .object({ requests: z.array(deadRequestSchema) })
  .meta({ id: 'DeadTaskRequests', description: 'Requests to retry or delete dead tasks, newest first.' })

export type DeadTaskRequestPage = z.infer<typeof deadRequestPageSchema>
