// Defines how tasks are cancelled over HTTP: one task by id, or a queue's tasks by filter.
import { z } from 'zod'
import type { Duration } from '../../definition/units/duration.ts'
import { durationText } from '../../definition/units/duration-text.ts'
import { TASK_STATUSES } from '../../task/states.ts'
import { flagText, waitSchema } from '../queries.ts'
import { requesterName } from '../requester.ts'
import { tagSchema } from './enqueue.ts'
import { linksSchema } from './task-view.ts'

/** The result of cancelling one task. */
export const CANCEL_OUTCOMES = [
  /** The task has ended: either it will never start, or its handler has stopped. */
  'cancelled',
  /** The task is running and has been signalled, but has not ended yet. */
  'cancelling',
  /** The task is a short task that is already running, so it cannot be stopped. */
  'not_cancellable',
  'already_ended',
] as const

export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number]
/** What a broker's `cancel` returns. */
export type CancelAnswer = CancelOutcome | 'not_found'

const time = z.iso.datetime()

const by = requesterName
  .optional()
  .describe("Who is cancelling the task, for the attempt record. The API adds the API key's fingerprint.")

/** The body of POST /v1/tasks/{id}/cancel, which is optional. */
export const cancelOneSchema = z.strictObject({ by }).meta({ id: 'CancelOne' })

/** The query parameters of POST /v1/tasks/{id}/cancel. */
export const cancelOneQuerySchema = z.strictObject({
  wait: waitSchema.optional().describe('How many seconds to wait for the task to end, from 0 to 30.'),
})

export const cancelledSchema = z
  .object({ id: z.string(), outcome: z.enum(CANCEL_OUTCOMES), status: z.enum(TASK_STATUSES), links: linksSchema })
  .meta({ id: 'Cancelled' })

export type Cancelled = z.infer<typeof cancelledSchema>

/** The body of POST /v1/tasks/cancel. A task must match every field that is given. */
export const cancelFilterSchema = z
  .strictObject({
    queue: z.string(),
    task: z.string().optional().describe('Only tasks of this definition.'),
    tag: tagSchema.optional().describe('Only tasks with this tag.'),
    olderThan: durationText
      .optional()
      .describe("Only tasks enqueued at least this long ago, such as '1h'. By default, tasks of any age match."),
    by,
  })
  .meta({ id: 'CancelFilter' })

/** The query parameters of POST /v1/tasks/cancel. */
export const cancelManyQuerySchema = z.strictObject({
  dryRun: flagText.describe(
    'If `true`, the request does not cancel any tasks, and the response contains the number of tasks that match now.',
  ),
})

/** Selects which of a queue's tasks to cancel. A task must match every field. */
export interface CancelRequest {
  readonly queue: string
  readonly task?: string
  readonly tag?: string
  /** The shortest time since the task was enqueued. */
  readonly olderThan?: Duration
  /** Who requested the cancellation, for the attempt record. */
  readonly by?: string
}

const filterFields = {
  queue: z.string(),
  task: z.string().optional(),
  tag: z.string().optional(),
  enqueuedUntil: time.describe('Only tasks enqueued at this time or earlier match.'),
}

export const cancellationSchema = z
  .object({
    id: z.string(),
    ...filterFields,
    by: z.string().describe('Who requested the cancellation.'),
    status: z
      .enum(['pending', 'done'])
      .describe(
        '`pending` means that no more matching tasks will start, but some are still in the queue or still running.',
      ),
    ended: z.int().describe('How many waiting, scheduled or retrying tasks have been cancelled so far.'),
    requestedAt: time,
    doneAt: time.optional(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Cancellation', description: "A request to cancel all of a queue's tasks that match a filter." })

export type Cancellation = z.infer<typeof cancellationSchema>

export const cancelPreviewSchema = z
  .object({
    ...filterFields,
    matching: z.int().describe('How many waiting, scheduled, retrying or active tasks match now.'),
    exact: z
      .boolean()
      .describe(
        'False if the queue contains more tasks than a dry run reads. In that case, `matching` is a lower bound.',
      ),
  })
  .meta({ id: 'CancelPreview', description: 'The tasks that a cancel by filter would match.' })

export type CancelPreview = z.infer<typeof cancelPreviewSchema>
