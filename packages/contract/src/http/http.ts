// Requests and responses of the HTTP API, made from the catalogue.
import { z } from 'zod'
import type { Catalogue } from '../definition/catalogue.ts'
import type { Duration, Limit } from '../definition/duration.ts'
import { durationText } from '../definition/duration-text.ts'
import type { TaskDefinition } from '../definition/task-definition.ts'
import { BullpenError } from '../errors/errors.ts'
import { attemptRecordSchema } from '../task/attempt-record.ts'
import { TASK_STATUSES } from '../task/states.ts'

/** The longest time, in seconds, that a look-up may wait for a task's end. */
export const MAX_WAIT_S = 30

/** The most tasks in one page of a listing, and how many unless the caller says. */
export const PAGE = { max: 200, default: 50 } as const

const metaSchema = z
  .record(z.string().max(64), z.string().max(256))
  .refine((meta) => Object.keys(meta).length <= 16, 'at most 16 entries')

/** The most tags that a task has. */
export const MAX_TAGS = 10

const tagSchema = z
  .string()
  .regex(/^[A-Za-z0-9._:/@-]{1,64}$/, 'a tag is 1 to 64 of the characters A-Z a-z 0-9 . _ : / @ -')

const tagsSchema = z
  .array(tagSchema)
  .max(MAX_TAGS, `at most ${MAX_TAGS} tags`)
  .refine((tags) => new Set(tags).size === tags.length, 'no tag twice')

/** What a POST /v1/tasks may say besides the task and its input. */
const callOptions = {
  meta: metaSchema
    .optional()
    .describe("The caller's own labels: at most 16, keys up to 64 and values up to 256 characters."),
  tags: tagsSchema
    .optional()
    .describe('What it may be cancelled by, with others: at most 10, each 1 to 64 of A-Z a-z 0-9 . _ : / @ -'),
  delay: durationText.optional().describe("Earliest start, from now: '30s', '2h'."),
  timeout: z
    .union([z.literal('none'), durationText])
    .optional()
    .describe("Run timeout of each attempt of a long task; replaces the definition's. 'none' for no limit."),
  heartbeatTimeout: z
    .union([z.literal('none'), durationText])
    .optional()
    .describe("The longest time between two signs of life of a long task; replaces the definition's."),
  queueTimeout: z
    .union([z.literal('none'), durationText])
    .optional()
    .describe(
      "How long a long task may wait for its first start; replaces the definition's. After it, the task is expired.",
    ),
  totalTimeout: z
    .union([z.literal('none'), durationText])
    .optional()
    .describe("A long task's whole life, over all attempts; replaces the definition's. 'none' for no limit."),
}

export const callOptionsSchema = z.strictObject(callOptions)

/** The body of POST /v1/tasks for one definition. */
export function enqueueRequestSchema(definition: TaskDefinition) {
  return z.strictObject({ task: z.literal(definition.name), input: definition.input, ...callOptions }).meta({
    id: `Enqueue ${definition.name}`,
    ...(definition.summary === undefined ? {} : { description: definition.summary }),
  })
}

/** What may be said of one task when it is enqueued. */
export interface CallOptions {
  readonly meta?: Readonly<Record<string, string>>
  /** What it may be cancelled by, with others: at most 10, each 1 to 64 of `A-Z a-z 0-9 . _ : / @ -`. */
  readonly tags?: readonly string[]
  /** Earliest start, from now. */
  readonly delay?: Duration
  readonly timeout?: Limit
  readonly heartbeatTimeout?: Limit
  readonly queueTimeout?: Limit
  readonly totalTimeout?: Limit
}

/** What stands in a valid body, whatever the task. */
export interface EnqueueRequest extends CallOptions {
  readonly task: string
  readonly input: unknown
}

/** The body of POST /v1/tasks: one of the catalogue's tasks, told apart by `task`. */
export function enqueueBodySchema(catalogue: Catalogue) {
  const [first, ...rest] = catalogue.definitions.map(enqueueRequestSchema)
  if (first === undefined) throw new BullpenError('invalid_definition', 'a catalogue holds at least one definition')
  return z.discriminatedUnion('task', [first, ...rest])
}

const linksSchema = z.object({ self: z.string(), wait: z.string(), queue: z.string() })

export const acceptedSchema = z
  .object({ id: z.string(), status: z.enum(TASK_STATUSES), links: linksSchema })
  .meta({ id: 'Accepted', description: 'The task is stored in Redis.' })

/** What a request to cancel a task came to. */
export const CANCEL_OUTCOMES = [
  /** Ended: it never runs, or has stopped. */
  'cancelled',
  /** It runs, and has been told; the wait is over. */
  'cancelling',
  /** A short task that runs: it can't be stopped. */
  'not_cancellable',
  'already_ended',
] as const

export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number]
/** As a broker answers. */
export type CancelAnswer = CancelOutcome | 'not_found'

export const cancelledSchema = z
  .object({ id: z.string(), outcome: z.enum(CANCEL_OUTCOMES), status: z.enum(TASK_STATUSES), links: linksSchema })
  .meta({ id: 'Cancelled' })

export type Cancelled = z.infer<typeof cancelledSchema>

const time = z.iso.datetime()

/** The body of POST /v1/tasks/cancel: which tasks of a queue. */
export const cancelFilterSchema = z
  .strictObject({
    queue: z.string(),
    task: z.string().optional().describe('Those of this definition alone.'),
    tag: tagSchema.optional().describe('Those that have this tag alone.'),
    olderThan: durationText.optional().describe("Those that were enqueued at least so long ago: '1h'. Default: all."),
  })
  .meta({ id: 'CancelFilter' })

/** Which tasks of a queue a caller wants to be cancelled: all that fit each of these. */
export interface CancelRequest {
  readonly queue: string
  readonly task?: string
  readonly tag?: string
  /** Since they were enqueued. */
  readonly olderThan?: Duration
}

export const cancellationSchema = z
  .object({
    id: z.string(),
    queue: z.string(),
    task: z.string().optional(),
    tag: z.string().optional(),
    enqueuedUntil: time.describe('It covers tasks that were enqueued then or before.'),
    status: z
      .enum(['pending', 'done'])
      .describe('`pending`: none that it covers starts any more; some stand among those that wait, or still run.'),
    ended: z.int().describe('How many have been ended so far that waited, were scheduled or retrying.'),
    requestedAt: time,
    doneAt: time.optional(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Cancellation', description: 'A cancel of the tasks of a queue that a filter fits.' })

export type Cancellation = z.infer<typeof cancellationSchema>

/** One task, whatever its definition. Times are RFC 3339 in UTC. */
export const taskViewSchema = z
  .object({
    id: z.string(),
    task: z.string(),
    version: z.int(),
    queue: z.string(),
    status: z.enum(TASK_STATUSES),
    state: z
      .enum([...attemptRecordSchema.shape.state.options, 'NEW', 'IN_PROCESS'])
      .optional()
      .describe("The newest attempt's state."),
    reason: z.string().optional(),
    fencingToken: z.int().describe('How often a handler was started.'),
    attemptsMade: z.int().describe('Attempts used up.'),
    maxAttempts: z.int(),
    input: z.unknown(),
    output: z.unknown().optional().describe('When completed.'),
    error: z.object({ code: z.string(), message: z.string() }).optional().describe("The newest failed attempt's."),
    progress: z.object({ fraction: z.number(), note: z.string().optional() }).optional(),
    steps: z.array(z.string()).optional().describe('Its finished steps, by name.'),
    meta: z.record(z.string(), z.string()),
    tags: z.array(z.string()),
    correlationId: z.string().optional(),
    enqueuedAt: time,
    dueAt: time.optional(),
    startedAt: time.optional(),
    endedAt: time.optional(),
    attempts: z.array(
      attemptRecordSchema.omit({ startedAt: true, endedAt: true }).extend({ startedAt: time, endedAt: time }),
    ),
    links: linksSchema,
  })
  .meta({ id: 'Task' })

export type TaskView = z.infer<typeof taskViewSchema>
export type Accepted = z.infer<typeof acceptedSchema>

/** Of a query: digits, with a fraction where one makes sense; '0x10' and ' ' are no numbers. */
const numberText = (form: RegExp) => z.string().regex(form, 'it is a number').transform(Number)

export const waitSchema = numberText(/^\d{1,3}(\.\d{1,3})?$/).pipe(z.number().min(0).max(MAX_WAIT_S))

export const listQuerySchema = z.strictObject({
  queue: z.string(),
  status: z.enum(TASK_STATUSES),
  limit: numberText(/^\d{1,6}$/)
    .pipe(z.number().int().min(1).max(PAGE.max))
    .default(PAGE.default),
  cursor: z.string().max(256).optional(),
})

export const taskPageSchema = z
  .object({
    tasks: z.array(taskViewSchema),
    next: z.string().optional().describe('The cursor of the next page; absent on the last.'),
  })
  .meta({ id: 'TaskPage' })

export type TaskPage = z.infer<typeof taskPageSchema>
