// Defines schedules over HTTP: the request that stores one, and the responses that show them.
import { z } from 'zod'
import type { Duration } from '../definition/units/duration.ts'
import { durationText } from '../definition/units/duration-text.ts'
import type { ScheduledTaskOptions, SchedulePolicies } from '../schedule/schedule-definition.ts'
import { MAX_CATCH_UP, OVERLAPS } from '../schedule/schedule-policies.ts'
import { TASK_STATUSES } from '../task/states.ts'
import { cursorSchema, flagText, limitSchema } from './queries.ts'
import { requesterName } from './requester.ts'
import { scheduledTaskFields } from './tasks/enqueue.ts'

/** A schedule's name. The tag `schedule:<name>` of its tasks must fit into 64 characters. */
export const SCHEDULE_NAME = /^[a-z][a-z0-9._-]{0,53}$/
const NAME_RULE =
  'expected a lower-case letter followed by lower-case letters, digits, dots, hyphens and underscores, at most 54 characters'

/** A schedule's tasks have a tag and two labels of Bullpen's own. */
const MAX_OWN_TAGS = 9
const MAX_OWN_META = 14

const settings = {
  cron: z
    .string()
    .max(200)
    .optional()
    .describe(
      "A cron expression with five fields, or with six if it starts with seconds, such as '0 3 * * *'. Excludes `every`.",
    ),
  timeZone: z
    .string()
    .max(64)
    .optional()
    .describe("The IANA time zone of the cron expression, such as 'Europe/Berlin'. Defaults to 'UTC'."),
  every: durationText
    .optional()
    .describe(
      "The interval between two ticks, at least '1s'. The ticks are multiples of the interval since 1970, in UTC.",
    ),
  offset: durationText.optional().describe('How much later each tick of an interval is. Must be shorter than `every`.'),
  overlap: z
    .enum(OVERLAPS)
    .optional()
    .describe(
      'What happens at a tick if the previous run has not ended: `skip` the tick, `allow` the runs to overlap, `queue` the run until the previous one has ended, or `cancel` the previous run. Defaults to `skip`.',
    ),
  catchUp: z
    .union([z.enum(['skip', 'one']), z.strictObject({ max: z.int().min(1).max(MAX_CATCH_UP) })])
    .optional()
    .describe(
      'What happens to missed ticks, which are those that were not handled within ten seconds: `skip` them, enqueue `one` task for the newest, or enqueue a task for each of the newest `max`. Defaults to `one`.',
    ),
  jitter: durationText
    .optional()
    .describe(
      'Enqueues each task at a random time up to this long after its tick, but before the next tick. By default, there is no delay.',
    ),
}

/** The settings of a schedule in a request and in a definition. */
export const scheduleRequestSchema = z
  .strictObject({
    name: z.string().regex(SCHEDULE_NAME, NAME_RULE),
    task: z.string().describe('The name of the task to enqueue.'),
    input: z.unknown().describe("The task's input."),
    ...settings,
    ...scheduledTaskFields,
  })
  .refine(({ tags = [] }) => tags.length <= MAX_OWN_TAGS, {
    path: ['tags'],
    error: `at most ${MAX_OWN_TAGS} tags, because the tag of the schedule is added`,
  })
  .refine(({ meta = {} }) => Object.keys(meta).length <= MAX_OWN_META, {
    path: ['meta'],
    error: `at most ${MAX_OWN_META} entries, because two labels of the schedule are added`,
  })

/** A schedule in a request. Exactly one of `cron` and `every` must be given. */
export interface ScheduleRequest extends SchedulePolicies, ScheduledTaskOptions {
  readonly name: string
  /** The name of the task to enqueue. */
  readonly task: string
  readonly input?: unknown
  readonly cron?: string
  readonly timeZone?: string
  readonly every?: Duration
  readonly offset?: Duration
}

const by = requesterName
  .optional()
  .describe(
    "Who sends the request, for the log and the schedule's `changedBy`. The API adds the API key's fingerprint.",
  )

/** The body of POST /v1/schedules. The task's own schema checks the input. */
export const schedulePutSchema = scheduleRequestSchema.safeExtend({ by }).meta({ id: 'ScheduleRequest' })

/** The optional body of the requests that pause, resume, run or sync schedules, and the query of the one that deletes a schedule. */
export const scheduleChangeSchema = z.strictObject({ by }).meta({ id: 'ScheduleChange' })

export const SCHEDULE_SOURCES = ['catalogue', 'api'] as const
export const SCHEDULE_ACTIONS = ['created', 'changed', 'unchanged', 'deleted'] as const
export const SCHEDULE_TROUBLES = ['failing', 'overlapping', 'missed', 'unreadable'] as const

export type ScheduleSource = (typeof SCHEDULE_SOURCES)[number]
export type ScheduleAction = (typeof SCHEDULE_ACTIONS)[number]
export type ScheduleTrouble = (typeof SCHEDULE_TROUBLES)[number]

const time = z.iso.datetime()

/** The maximum number of next ticks in a response. */
export const MAX_NEXT_RUNS = 100

const nextSchema = z
  .string()
  .regex(/^\d{1,3}$/, `expected a whole number from 0 to ${MAX_NEXT_RUNS}`)
  .transform(Number)
  .pipe(z.int().min(0).max(MAX_NEXT_RUNS, `expected a whole number from 0 to ${MAX_NEXT_RUNS}`))
  .describe(`How many of the next ticks to return for each schedule, from 0 to ${MAX_NEXT_RUNS}.`)

export const schedulesQuerySchema = z.strictObject({
  next: nextSchema.default(1),
  trouble: flagText.describe(
    'If `true`, returns only the schedules that are in trouble: failing, overlapping, missing ticks or unreadable.',
  ),
  limit: limitSchema,
  cursor: cursorSchema.optional().describe("The previous page's `next`."),
})

export const scheduleQuerySchema = z.strictObject({ next: nextSchema.default(5) })

export const syncQuerySchema = z.strictObject({
  dryRun: flagText.describe(
    'If `true`, the request does not change anything, and the response says what it would change.',
  ),
})

export const scheduleViewSchema = z
  .object({
    name: z.string(),
    task: z.string(),
    queue: z.string(),
    input: z
      .unknown()
      .optional()
      .describe('Absent if the API cannot decode the input. `trouble` then contains the reason.'),
    ...settings,
    ...scheduledTaskFields,
    source: z
      .enum(SCHEDULE_SOURCES)
      .describe(
        '`catalogue` if a catalogue has stored the schedule, even if a request has changed it since, and `api` if only requests have stored it.',
      ),
    status: z.enum(['active', 'paused']),
    pausedAt: time.optional(),
    pausedBy: z.string().optional(),
    createdAt: time,
    changedAt: time,
    changedBy: z.string().describe('Who created the schedule or changed it last.'),
    nextTicks: z.array(time).describe('The next ticks, without the jitter. Empty if the schedule is paused.'),
    waiting: z.array(time).describe('The ticks whose runs wait for the previous run to end.'),
    lastRun: z
      .object({
        id: z.string(),
        tick: time.describe('The tick of the run, or the time of the request that started it.'),
        at: time.describe('When the task was enqueued.'),
        status: z.enum(TASK_STATUSES).optional().describe('Absent if the task has been deleted.'),
      })
      .optional(),
    runs: z.int().describe('How many tasks the schedule has enqueued.'),
    skipped: z.int().describe('How many ticks were skipped because the previous run had not ended.'),
    missedAt: time.optional().describe('The newest missed tick for which no task was enqueued.'),
    trouble: z
      .array(
        z.object({
          kind: z.enum(SCHEDULE_TROUBLES),
          since: time,
          detail: z.string().describe('What is wrong, in one sentence.'),
        }),
      )
      .describe(
        '`failing`: the last run, or the last few, ended as dead or expired. `overlapping`: for at least an hour, every tick has found the previous run unfinished. `missed`: within the last day, a tick was missed for which no task was enqueued. `unreadable`: the API cannot decode the input.',
      ),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Schedule' })

export type ScheduleView = z.infer<typeof scheduleViewSchema>

export const scheduleListSchema = z
  .object({
    schedules: z.array(scheduleViewSchema),
    next: z.string().optional().describe('Pass it as `cursor` to get the next page. Absent on the last page.'),
  })
  .meta({ id: 'ScheduleList' })

export type ScheduleList = z.infer<typeof scheduleListSchema>

export const scheduleStoredSchema = z
  .object({
    action: z.enum(['created', 'changed', 'unchanged']),
    schedule: scheduleViewSchema,
  })
  .meta({ id: 'ScheduleStored' })

export type ScheduleStored = z.infer<typeof scheduleStoredSchema>

export const scheduleDeletedSchema = z
  .object({ name: z.string(), action: z.literal('deleted') })
  .meta({ id: 'ScheduleDeleted' })

export type ScheduleDeleted = z.infer<typeof scheduleDeletedSchema>

export const scheduleSyncSchema = z
  .object({
    dryRun: z.boolean(),
    changes: z.array(
      z.object({
        name: z.string(),
        queue: z.string(),
        action: z.enum(SCHEDULE_ACTIONS),
        fields: z
          .array(z.object({ field: z.string(), from: z.unknown().optional(), to: z.unknown().optional() }))
          .describe('The settings that differ. Empty unless the action is `changed`.'),
      }),
    ),
  })
  .meta({ id: 'ScheduleSync' })

export type ScheduleSync = z.infer<typeof scheduleSyncSchema>

export function schedulePath(name: string): string {
  return `/v1/schedules/${name}`
}
