// Defines POST /v1/tasks: the request body, which is built from the catalogue, and the response.
import { z } from 'zod'
import type { Catalogue } from '../../definition/catalogue.ts'
import { concurrencyKeySchema } from '../../definition/concurrency-key.ts'
import { type Durability, durabilitySchema } from '../../definition/durability.ts'
import type { FollowUp, FollowUps } from '../../definition/follow-ups/follow-up.ts'
import { type WhenFull, whenFullSchema } from '../../definition/limits/when-full.ts'
import { prioritySchema } from '../../definition/priority.ts'
import { BACKOFF_TYPES, type Backoff, MAX_FACTOR } from '../../definition/retry/retry-policy.ts'
import type { TaskDefinition } from '../../definition/task-definition.ts'
import { MAX_TASK_NAME_LENGTH } from '../../definition/task-name.ts'
import { freeText, nameText } from '../../definition/texts.ts'
import type { Duration, Limit } from '../../definition/units/duration.ts'
import { durationText, limitText } from '../../definition/units/duration-text.ts'
import { BullpenError } from '../../errors/errors.ts'
import { ENQUEUE_ACTIONS } from '../../task/enqueued.ts'
import { MAX_FOLLOW_UPS } from '../../task/follow-up.ts'
import { TASK_STATUSES } from '../../task/states.ts'
import { linksSchema } from './task-view.ts'
import { type UniqueOptions, uniqueSchema } from './unique.ts'

/** The maximum number of tags that a task may have. */
export const MAX_TAGS = 10

const metaSchema = z
  .record(nameText(64), freeText(256))
  .refine((meta) => Object.keys(meta).length <= 16, 'at most 16 entries')

export const tagSchema = z
  .string()
  .regex(/^[A-Za-z0-9._:/@-]{1,64}$/, 'expected a tag of 1 to 64 of the characters A-Z a-z 0-9 . _ : / @ -')

const startTimeSchema = z.iso.datetime({
  offset: true,
  error: "expected a time with an offset, such as '2030-12-31T09:00:00Z'",
})

const tagsSchema = z
  .array(tagSchema)
  .max(MAX_TAGS, `at most ${MAX_TAGS} tags`)
  .refine((tags) => new Set(tags).size === tags.length, 'duplicate tag; each tag may appear once')

/** Stored with the task, so there may be fewer of them than in a definition. */
const MAX_DELAYS = 100

const retrySchema = z.strictObject({
  maxAttempts: z
    .int()
    .min(1)
    .optional()
    .describe(
      "The maximum number of attempts, including the first. At most the definition's `retry.callBounds.maxAttempts`, which defaults to its `retry.maxAttempts`.",
    ),
  backoff: z
    .strictObject({
      type: z.enum(BACKOFF_TYPES).optional().describe("Defaults to the definition's type."),
      initialDelay: durationText.optional().describe("The delay before the second attempt, such as '5s'."),
      maxDelay: durationText.optional().describe('The longest delay of an exponential or linear backoff.'),
      factor: z
        .number()
        .min(1)
        .max(MAX_FACTOR)
        .optional()
        .describe('By how much an exponential backoff multiplies the delay after each attempt.'),
      delays: z
        .array(durationText)
        .min(1)
        .max(MAX_DELAYS)
        .optional()
        .describe('The delays of the type `list`, one for each retry. The last one is repeated.'),
      jitter: z
        .union([z.number().min(0).max(1), z.literal('full')], { error: "expected a number from 0 to 1, or 'full'" })
        .optional()
        .describe("How much each delay varies at random: a share such as 0.2 for ±20%, or 'full'."),
    })
    .optional()
    .describe(
      "The delays between the attempts. A setting that is left out keeps the definition's value. Every delay must be within the definition's `retry.callBounds`, which default to the shortest and the longest delay of its backoff.",
    ),
})

/** What a request may contain besides the task's name and its input. */
const callOptions = {
  meta: metaSchema
    .optional()
    .describe('Labels for your own use: at most 16, with keys of up to 64 and values of up to 256 characters.'),
  tags: tagsSchema
    .optional()
    .describe(
      'Tags that can be used to cancel tasks: at most 10, each with 1 to 64 of the characters A-Z a-z 0-9 . _ : / @ -',
    ),
  delay: durationText.optional().describe("How long to wait before starting the task, such as '30s' or '2h'."),
  runAt: startTimeSchema
    .optional()
    .describe(
      "When to start the task, such as '2030-12-31T09:00:00Z'. A time in the past starts the task at once. At most 365 days ahead. Excludes `delay`.",
    ),
  priority: prioritySchema
    .optional()
    .describe(
      "From 0 to 9, which overrides the definition's setting. Waiting tasks with a smaller number start first. Tasks of the same priority start in the order in which they became ready. If concurrency keys take turns, this order applies to the tasks of each key.",
    ),
  concurrencyKey: concurrencyKeySchema
    .optional()
    .describe(
      "The tenant or resource that the task belongs to: 1 to 128 characters, without line breaks or other control characters. It is stored and shown with the task. If the task's queue is defined with `fairness`, its concurrency keys take turns.",
    ),
  unique: uniqueSchema
    .optional()
    .describe('A unique key. As long as a task has the key, no other task of the same definition can have it.'),
  retry: retrySchema.optional().describe("Overrides the definition's retry policy within its bounds."),
  timeout: limitText
    .optional()
    .describe(
      "The timeout for each attempt, such as '30s', which overrides the definition's. Use 'none' for no timeout. Applies only to long tasks.",
    ),
  heartbeatTimeout: limitText
    .optional()
    .describe(
      "The longest time between two heartbeats from the handler, which overrides the definition's setting. Applies only to long tasks.",
    ),
  queueTimeout: limitText
    .optional()
    .describe(
      "How long the task may wait for its first attempt before it expires, which overrides the definition's setting. Applies only to long tasks.",
    ),
  totalTimeout: limitText
    .optional()
    .describe(
      "The longest time from enqueueing to the end of the last attempt, which overrides the definition's setting. Applies only to long tasks. The `callBounds.totalTimeout` of the definition's `retry` is the longest.",
    ),
  durability: durabilitySchema
    .optional()
    .describe(
      "When the enqueue is acknowledged, which overrides the definition's setting: `primary` as soon as Redis has stored the task, or `replicated` once a replica of Redis has it, too.",
    ),
}

const { runAt: _runAt, unique: _unique, durability: _durability, ...followUpOptions } = callOptions

/** The schema of a follow-up. Its input is checked against its definition later, because a follow-up may have any definition. */
export const followUpSchema: z.ZodType<FollowUp> = z
  .strictObject({
    task: z.string().max(MAX_TASK_NAME_LENGTH).describe("The name of the follow-up's definition."),
    input: z.unknown().describe("The follow-up's input, as its definition requires."),
    ...followUpOptions,
    ...followUpLists(),
  })
  .meta({ id: 'FollowUp' }) as z.ZodType<FollowUp>

function followUpLists() {
  const list = z.array(z.lazy(() => followUpSchema)).max(MAX_FOLLOW_UPS, `at most ${MAX_FOLLOW_UPS} follow-up tasks`)
  return {
    onSuccess: list
      .optional()
      .describe(
        'The tasks to enqueue when the task is completed. A task has at most 16 follow-ups, which take at most 64 KiB.',
      ),
    onFailure: list
      .optional()
      .describe(
        'The tasks to enqueue when the task is dead or expired, but not when an attempt fails that is retried, or when the task is cancelled.',
      ),
    onEnd: list.optional().describe('The tasks to enqueue when the task is completed, dead, cancelled or expired.'),
  }
}

const { delay: _, ...scheduledTask } = followUpOptions

/** What a schedule may set for each of its tasks. */
export const scheduledTaskFields = scheduledTask

/** The options that do not exist for child tasks. */
const producerOptions = {
  ...followUpLists(),
  whenFull: whenFullSchema
    .optional()
    .describe(
      'What happens if the queue is full, which overrides the queue\'s policy: `reject` the task, `drop` it, or wait for room for up to 30 s, as in `{ "block": "10s" }`.',
    ),
}

export const callOptionsSchema = z.strictObject(callOptions)

export const childOptionsSchema = z.strictObject({ ...callOptions, ...followUpLists() })

export const producerOptionsSchema = z.strictObject({ ...callOptions, ...producerOptions })

/** Returns the schema of a POST /v1/tasks body for one definition. */
export function enqueueRequestSchema(definition: TaskDefinition) {
  return z
    .strictObject({ task: z.literal(definition.name), input: definition.input, ...callOptions, ...producerOptions })
    .meta({
      id: `Enqueue ${definition.name}`,
      ...(definition.summary === undefined ? {} : { description: definition.summary }),
    })
}

/** The retry settings of one task. */
export interface CallRetry {
  /**
   * The number of attempts including the first, from 1 to the definition's `callBounds.maxAttempts`. Defaults to the definition's
   * `maxAttempts`.
   */
  readonly maxAttempts?: number
  readonly backoff?: CallBackoff
}

/**
 * The delays between the attempts of one task, which must be within the definition's `callBounds`. A setting that is left out has the
 * value of the definition's backoff. If that backoff is of another type and lacks the setting, the setting has its usual default, or
 * the bound that is nearest to the default.
 */
export interface CallBackoff {
  /** Defaults to the definition's type. */
  readonly type?: Backoff['type']
  /** The delay before the second attempt. Excludes the type 'list'. */
  readonly initialDelay?: Duration
  /** The longest delay, for the types 'exponential' and 'linear'. */
  readonly maxDelay?: Duration
  /** A number from 1 to 100, for the type 'exponential'. */
  readonly factor?: number
  /** 1 to 100 delays, for the type 'list'. They are stored with the task. */
  readonly delays?: readonly Duration[]
  /** A number from 0 to 1, or 'full'. */
  readonly jitter?: Backoff['jitter']
}

/** The options that a caller may set for one task when enqueueing it. */
export interface CallOptions {
  readonly meta?: Readonly<Record<string, string>>
  /** Tags that can be used to cancel tasks: at most 10, each with 1 to 64 of the characters `A-Z a-z 0-9 . _ : / @ -`. */
  readonly tags?: readonly string[]
  /** How long to wait before starting the task. */
  readonly delay?: Duration
  /**
   * When to start the task: a Date, or an RFC 3339 time with an offset, such as `'2030-12-31T09:00:00Z'`. A time in the past
   * starts the task at once. Excludes `delay`.
   */
  readonly runAt?: Date | string
  /**
   * From 0 to 9. Waiting tasks with a smaller number start first. Tasks of the same priority start in the order in which they
   * became ready. If concurrency keys take turns, this order applies to the tasks of each key. Defaults to the definition's `priority`.
   */
  readonly priority?: number
  /**
   * The tenant or resource that the task belongs to: 1 to 128 characters, without line breaks or other control characters. It is stored
   * and shown with the task. If the task's queue is defined with `fairness`, its concurrency keys take turns.
   */
  readonly concurrencyKey?: string
  /** A unique key. As long as a task has the key, no other task of the same definition can have it. */
  readonly unique?: UniqueOptions
  /** Overrides the definition's retry policy, within the `callBounds` of that policy. */
  readonly retry?: CallRetry
  readonly timeout?: Limit
  readonly heartbeatTimeout?: Limit
  readonly queueTimeout?: Limit
  readonly totalTimeout?: Limit
  /** When the enqueue is acknowledged. Defaults to the `durability` of the task's definition. */
  readonly durability?: Durability
}

/** The options that a producer may set for one task. A child task has no `whenFull`. */
export interface ProducerOptions extends CallOptions, FollowUps {
  /** What happens if the queue is full. Defaults to the `whenFull` of the queue's definition. The longest wait is '30s'. */
  readonly whenFull?: WhenFull
}

/** The fields of a valid body for any task. */
export interface EnqueueRequest extends ProducerOptions {
  readonly task: string
  readonly input: unknown
}

/** Returns the schema of a POST /v1/tasks body: one of the catalogue's tasks, discriminated by `task`. */
export function enqueueBodySchema(catalogue: Catalogue) {
  const [first, ...rest] = catalogue.definitions.map(enqueueRequestSchema)
  if (first === undefined) throw new BullpenError('invalid_definition', 'a catalogue needs at least one definition')
  return z.discriminatedUnion('task', [first, ...rest])
}

export const acceptedSchema = z
  .object({
    id: z.string(),
    action: z
      .enum(ENQUEUE_ACTIONS)
      .describe(
        '`created`: this request has stored the task. `replaced`: it has stored the task, and deleted the task that had the unique key. `existing`: another task has the unique key, and has not been changed. `extended`: another task has the unique key, and its start was postponed. With `existing` and `extended`, `id` and `status` are those of the other task.',
      ),
    status: z
      .enum(TASK_STATUSES)
      .optional()
      .describe(
        'Absent if the other task has been deleted but still has its unique key, which is possible if `until` is a duration.',
      ),
    expectedStartAt: z
      .string()
      // Checking the format of a time that the API has formatted would take longer than the estimate.
      .meta({ format: 'date-time' })
      .optional()
      .describe(
        "When the task is expected to start, such as `2030-01-31T09:00:00.000Z`. It is an estimate, rounded up to a second, from the number of tasks that start before it and the rate at which the queue's tasks have started. A scheduled task is never expected to start before it is due. Absent if the action is `existing`, or if no estimate is possible, for example because the queue is paused or nothing has started recently.",
      ),
    links: linksSchema,
  })
  .meta({ id: 'Accepted', description: 'The task is stored in Redis.' })

export type Accepted = z.infer<typeof acceptedSchema>

export const droppedSchema = z
  .object({ action: z.literal('dropped') })
  .meta({ id: 'Dropped', description: 'The queue is full, and the task was not stored.' })

export type Dropped = z.infer<typeof droppedSchema>
