// Cancelling tasks: one by its id, or those of a queue by filter.
import { z } from 'zod'
import type { Duration } from '../definition/duration.ts'
import { durationText } from '../definition/duration-text.ts'
import { TASK_STATUSES } from '../task/states.ts'
import { tagSchema } from './enqueue.ts'
import { waitSchema } from './queries.ts'
import { linksSchema } from './task-view.ts'

/** The result of cancelling one task. */
export const CANCEL_OUTCOMES = [
  /** The task has ended: it never starts, or its handler has stopped. */
  'cancelled',
  /** The task is running and has been signalled; it has not ended yet. */
  'cancelling',
  /** A short task that is running: it cannot be stopped. */
  'not_cancellable',
  'already_ended',
] as const

export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number]
/** As a broker answers. */
export type CancelAnswer = CancelOutcome | 'not_found'

const time = z.iso.datetime()

const by = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe('Who asks, for the record of the attempt; the fingerprint of the API key is added.')

/** The body of POST /v1/tasks/{id}/cancel, which may be left out. */
export const cancelOneSchema = z.strictObject({ by }).meta({ id: 'CancelOne' })

/** Of POST /v1/tasks/{id}/cancel. */
export const cancelOneQuerySchema = z.strictObject({
  wait: waitSchema.optional().describe('Seconds to wait for the end of the task: 0 to 30.'),
})

export const cancelledSchema = z
  .object({ id: z.string(), outcome: z.enum(CANCEL_OUTCOMES), status: z.enum(TASK_STATUSES), links: linksSchema })
  .meta({ id: 'Cancelled' })

export type Cancelled = z.infer<typeof cancelledSchema>

/** The body of POST /v1/tasks/cancel: a task must match every field that is given. */
export const cancelFilterSchema = z
  .strictObject({
    queue: z.string(),
    task: z.string().optional().describe('Only tasks of this definition.'),
    tag: tagSchema.optional().describe('Only tasks with this tag.'),
    olderThan: durationText
      .optional()
      .describe("Only tasks enqueued at least this long ago, such as '1h'. Default: all."),
    by,
  })
  .meta({ id: 'CancelFilter' })

/** Of POST /v1/tasks/cancel. */
export const cancelManyQuerySchema = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .describe('`true`: cancels nothing, and answers how many tasks match now.'),
})

/** Which tasks of a queue to cancel: those that match every field. */
export interface CancelRequest {
  readonly queue: string
  readonly task?: string
  readonly tag?: string
  /** Since the task was enqueued. */
  readonly olderThan?: Duration
  /** Who asks, for the record. */
  readonly by?: string
}

const filterFields = {
  queue: z.string(),
  task: z.string().optional(),
  tag: z.string().optional(),
  enqueuedUntil: time.describe('Tasks enqueued at this time or earlier match.'),
}

export const cancellationSchema = z
  .object({
    id: z.string(),
    ...filterFields,
    by: z.string().describe('Who asked.'),
    status: z
      .enum(['pending', 'done'])
      .describe(
        '`pending`: no matching task starts any more; some have not been moved out of the queue, or still run.',
      ),
    ended: z.int().describe('How many waiting, scheduled or retrying tasks have been ended so far.'),
    requestedAt: time,
    doneAt: time.optional(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Cancellation', description: 'A cancel of the tasks of a queue that match a filter.' })

export type Cancellation = z.infer<typeof cancellationSchema>

export const cancelPreviewSchema = z
  .object({
    ...filterFields,
    matching: z.int().describe('How many tasks match now: waiting, scheduled, retrying or active.'),
    exact: z.boolean().describe('False: the queue holds more tasks than a dry run reads; at least `matching` match.'),
  })
  .meta({ id: 'CancelPreview', description: 'What a cancel by filter would match.' })

export type CancelPreview = z.infer<typeof cancelPreviewSchema>
