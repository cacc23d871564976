// Commands to the fleet over HTTP: what may be asked for, and what came of it.
import { z } from 'zod'
import { durationText } from '../definition/duration-text.ts'
import { limitSchema as pageLimitSchema, waitSchema } from '../http/queries.ts'
import { queueText, workerText } from './fleet-names.ts'

/** How a pool, a worker or a queue's whole fleet ends. */
export const DRAIN_MODES = [
  /** What was taken is finished; of a queue's fleet, all that is waiting, active or due. No deadline. */
  'light',
  /** What was started is finished, what was taken goes back. No deadline. */
  'soft',
  /** As soft until the deadline, then as hard. What SIGTERM does. */
  'soft_timeout',
  /** What was started is signalled at once. */
  'hard',
] as const

export type DrainMode = (typeof DRAIN_MODES)[number]

/** How one slot is stopped: after its task, or with it. */
export const STOP_MODES = ['wait', 'hard'] as const

export type StopMode = (typeof STOP_MODES)[number]

/** How many seconds the API waits for a command's answers unless it is told. */
export const COMMAND_WAIT_S = 5

/** The form of a command's id. */
export const COMMAND_ID = /^[A-Za-z0-9_-]{1,64}$/

const [queue, worker] = [queueText, workerText]
const concurrency = z.int().min(1).max(10_000)

const commandFields = {
  id: z
    .string()
    .regex(COMMAND_ID, 'it is 1 to 64 letters, digits, _ or -')
    .optional()
    .describe('Of the command: the same twice is one command. Made by the API unless given.'),
  by: z.string().min(1).max(100).optional().describe('Who asks, for the audit; beside the key that was used.'),
}

/** A queue: its fleet. A worker: all its pools. Both: the one pool. */
const target = {
  queue: queue.optional(),
  worker: worker.optional(),
}

const hasTarget = ({ queue, worker }: { queue?: string | undefined; worker?: string | undefined }): boolean =>
  queue !== undefined || worker !== undefined
const TARGET_REQUIRED = { error: 'name a queue, a worker, or both for one pool', path: ['queue'] }

const pauseSchema = z
  .strictObject({ action: z.literal('pause'), ...target, ...commandFields })
  .refine(hasTarget, TARGET_REQUIRED)
  .describe('Nothing more is started; what runs goes on.')
const resumeSchema = z
  .strictObject({ action: z.literal('resume'), ...target, ...commandFields })
  .refine(hasTarget, TARGET_REQUIRED)
  .describe('Ends a pause, and a drain by command: tasks are taken again.')
const drainSchema = z
  .strictObject({
    action: z.literal('drain'),
    mode: z.enum(DRAIN_MODES).default('soft_timeout'),
    timeout: durationText.optional().describe("Of soft_timeout: instead of each worker's own drain timeout."),
    ...target,
    ...commandFields,
  })
  .refine(hasTarget, TARGET_REQUIRED)
  .refine(({ mode, timeout }) => timeout === undefined || mode === 'soft_timeout', {
    error: 'only soft_timeout has one',
    path: ['timeout'],
  })
  .describe("A pool ends; a worker too, where no queue is named; a queue's fleet takes no new tasks either.")
const stopSchema = z
  .strictObject({
    action: z.literal('stop'),
    worker,
    queue,
    slot: z.int().min(1).describe('Its number in the pool, from 1.'),
    how: z.enum(STOP_MODES).default('wait'),
    ...commandFields,
  })
  .describe('One slot ends, and its pool goes on with one less.')
const resizeSchema = z
  .strictObject({ action: z.literal('resize'), queue, worker: worker.optional(), concurrency, ...commandFields })
  .describe('How many tasks a pool runs at once, until its worker ends. Without a worker: each pool of the queue.')
const limitSchema = z
  .strictObject({
    action: z.literal('limit'),
    queue,
    concurrency: z
      .union([z.literal('none'), concurrency])
      .optional()
      .describe('Over all workers.'),
    rate: z
      .union([z.literal('none'), z.strictObject({ max: z.int().min(1).max(1_000_000_000), per: durationText })])
      .optional()
      .describe('Starts in each such time, over all workers.'),
    ...commandFields,
  })
  .refine(({ concurrency, rate }) => concurrency !== undefined || rate !== undefined, {
    error: 'say concurrency, rate, or both',
    path: ['concurrency'],
  })
  .describe("What a queue's whole fleet may do; what is not said stays as it is.")

/** The body of POST /v1/commands. */
export const commandRequestSchema = z
  .discriminatedUnion('action', [pauseSchema, resumeSchema, drainSchema, stopSchema, resizeSchema, limitSchema], {
    error: ({ code }) =>
      code === 'invalid_union' ? 'it is pause, resume, drain, stop, resize or limit' : 'it is a JSON object',
  })
  .meta({ id: 'CommandRequest' })

/** As a caller writes it. */
export type CommandRequest = z.input<typeof commandRequestSchema>
type Parsed = z.output<typeof commandRequestSchema>
/** What is to be done, to what, and how: a command without its id and author. */
export type CommandSpec = Parsed extends infer One ? (One extends Parsed ? Omit<One, 'id' | 'by'> : never) : never
export type CommandAction = Parsed['action']

/** What one worker made of a command. */
export const ANSWER_OUTCOMES = [
  /** Carried out; of a drain: begun. Twice is once. */
  'done',
  /** It can't be; the detail says why. */
  'refused',
  /** Not heard of yet. */
  'pending',
  /** The worker ended, or fell silent, before it answered. */
  'gone',
] as const

export type AnswerOutcome = (typeof ANSWER_OUTCOMES)[number]

/** What a command came to, over all workers. */
export const COMMAND_OUTCOMES = ['done', 'partly', 'refused', 'pending'] as const

export type CommandOutcome = (typeof COMMAND_OUTCOMES)[number]

const time = z.iso.datetime()

const commandSpecSchema = z
  .object({
    action: z.enum(['pause', 'resume', 'drain', 'stop', 'resize', 'limit'] satisfies CommandAction[]),
    queue: z.string().optional(),
    worker: z.string().optional(),
    slot: z.int().optional(),
    mode: z.enum(DRAIN_MODES).optional(),
    timeout: z.string().optional(),
    how: z.enum(STOP_MODES).optional(),
    concurrency: z.union([z.literal('none'), z.int()]).optional(),
    rate: z.union([z.literal('none'), z.object({ max: z.int(), per: z.string() })]).optional(),
  })
  .describe('As it was asked for.')

/** One command, as the audit keeps it. */
export const commandViewSchema = z
  .object({
    id: z.string(),
    spec: commandSpecSchema,
    by: z.string().describe('Who asked: what the caller said, and the fingerprint of the key.'),
    at: time,
    outcome: z.enum(COMMAND_OUTCOMES),
    answers: z.array(
      z.object({
        worker: z.string(),
        outcome: z.enum(ANSWER_OUTCOMES),
        detail: z.string().optional(),
        at: time.optional(),
      }),
    ),
  })
  .meta({ id: 'Command' })

export type CommandView = z.infer<typeof commandViewSchema>

export const commandPageSchema = z.object({ commands: z.array(commandViewSchema) }).meta({ id: 'CommandPage' })

export type CommandPage = z.infer<typeof commandPageSchema>

/** Of POST /v1/commands. */
export const commandWaitSchema = z.strictObject({
  wait: waitSchema.default(COMMAND_WAIT_S).describe("Seconds to wait for every worker's answer: 0 to 30."),
})
/** Of GET /v1/commands/{id}. */
export const commandQuerySchema = z.strictObject({
  wait: waitSchema.default(0).describe("Seconds to wait for every worker's answer: 0 to 30."),
})
export const commandsQuerySchema = z.strictObject({ limit: pageLimitSchema })
