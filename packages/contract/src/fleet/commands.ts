// Defines fleet commands over HTTP: requests, outcomes and the workers' responses.
import { z } from 'zod'
import { MAX_ENQUEUE_RATE } from '../definition/limits/enqueue-rate.ts'
import { MAX_PERMITS, SHORT_NAME, SHORT_NAME_RULE } from '../definition/limits/permits.ts'
import { LOG_LEVELS } from '../definition/log.ts'
import { bytesOrAmount, durationText, limitText } from '../definition/units/duration-text.ts'
import { limitSchema as pageLimitSchema, waitSchema } from '../http/queries.ts'
import { requesterName } from '../http/requester.ts'
import { BREAKER_MODES } from '../task/breaker-states.ts'
import { apiKeyNameText, concurrencyKeyText, queueText, serviceText, taskNameText, workerText } from './fleet-names.ts'

/** What a drain does with tasks that were fetched or started. */
export const DRAIN_MODES = [
  /**
   * Finishes fetched tasks. If a queue's whole fleet is drained, all waiting and due tasks are finished too. There is no
   * deadline.
   */
  'light',
  /** Finishes started tasks and requeues fetched ones. There is no deadline. */
  'soft',
  /** Works like `soft` until the timeout, and then like `hard`. A worker does this on SIGTERM. */
  'soft_timeout',
  /** Signals started tasks at once, then requeues or fails them. */
  'hard',
] as const

export type DrainMode = (typeof DRAIN_MODES)[number]

/** When a slot stops: after its task has ended, or at once. */
export const STOP_MODES = ['wait', 'hard'] as const

export type StopMode = (typeof STOP_MODES)[number]

/** How many seconds the API waits for the workers' responses by default. */
export const COMMAND_WAIT_S = 5

/** The format of a command's id. */
export const COMMAND_ID = /^[A-Za-z0-9_-]{1,64}$/

const [queue, worker] = [queueText, workerText]
/** The maximum number of slots in a pool, and a queue's maximum concurrency across all workers. */
export const MAX_CONCURRENCY = 10_000
/** The maximum number of starts per period. */
export const MAX_RATE = 1_000_000_000

const concurrency = z.int().min(1).max(MAX_CONCURRENCY)

const commandFields = {
  id: z
    .string()
    .regex(COMMAND_ID, 'expected 1 to 64 letters, digits, _ or -')
    .optional()
    .describe(
      'Makes the command idempotent: a request with the same id repeats the same command. By default, the API generates an id.',
    ),
  by: requesterName
    .optional()
    .describe("Who is sending the command, for the audit log. The API adds the API key's fingerprint."),
}

/** A queue alone targets its whole fleet, a worker alone targets all its pools, and both together target one pool. */
const target = {
  queue: queue.optional(),
  worker: worker.optional(),
}

const hasTarget = ({ queue, worker }: { queue?: string | undefined; worker?: string | undefined }): boolean =>
  queue !== undefined || worker !== undefined
const TARGET_REQUIRED = { error: 'specify queue, worker, or both to target one pool', path: ['queue'] }

const pauseSchema = z
  .strictObject({ action: z.literal('pause'), ...target, ...commandFields })
  .refine(hasTarget, TARGET_REQUIRED)
  .describe('Stop starting tasks. Running tasks continue.')
const resumeSchema = z
  .strictObject({ action: z.literal('resume'), ...target, ...commandFields })
  .refine(hasTarget, TARGET_REQUIRED)
  .describe('End a pause, or a drain that a command started.')
const drainSchema = z
  .strictObject({
    action: z.literal('drain'),
    mode: z.enum(DRAIN_MODES).default('soft_timeout'),
    timeout: durationText
      .optional()
      .describe("The timeout of soft_timeout. Defaults to each worker's own drain timeout."),
    ...target,
    ...commandFields,
  })
  .refine(hasTarget, TARGET_REQUIRED)
  .refine(({ mode, timeout }) => timeout === undefined || mode === 'soft_timeout', {
    error: 'timeout requires mode soft_timeout',
    path: ['timeout'],
  })
  .describe(
    'Stop pools gracefully. If only a worker is given, it exits after the drain. If only a queue is given, the queue rejects new tasks until it is resumed.',
  )
const stopSchema = z
  .strictObject({
    action: z.literal('stop'),
    worker,
    queue,
    slot: z.int().min(1).describe("The slot's number in its pool, starting from 1."),
    how: z.enum(STOP_MODES).default('wait'),
    ...commandFields,
  })
  .describe('Stop one slot. Its pool keeps running with one fewer slot.')
const resizeSchema = z
  .strictObject({ action: z.literal('resize'), queue, worker: worker.optional(), concurrency, ...commandFields })
  .describe(
    'Change how many tasks a pool runs at once, until its worker exits. If no worker is given, every pool of the queue is resized.',
  )
/** The levels that a command may set. `configured` is the level of each worker's settings. */
export const COMMANDED_LEVELS = [...LOG_LEVELS, 'configured'] as const

export type CommandedLevel = (typeof COMMANDED_LEVELS)[number]

const logLevelSchema = z
  .strictObject({
    action: z.literal('log_level'),
    level: z
      .enum(COMMANDED_LEVELS)
      .describe(
        "The minimum level of the lines that are written. `configured` is the level of each worker's settings.",
      ),
    for: durationText
      .optional()
      .describe(
        'After this time, the level of the settings applies again. By default, a change of all processes lasts a day, and that of a worker or of a queue until the workers exit.',
      ),
    ...target,
    ...commandFields,
  })
  .describe(
    'Change the level of the log of one worker, of all running workers of a queue or, without a target, of all workers and API processes, including those that start while the change is in force.',
  )
const breakerSchema = z
  .strictObject({
    action: z.literal('breaker'),
    queue,
    service: serviceText,
    to: z
      .enum(BREAKER_MODES)
      .describe(
        '`open`: no task that depends on the service starts. `closed`: such tasks start, however many calls fail. `auto`: the calls determine the state again, and after `open`, tasks probe the service first.',
      ),
    ...commandFields,
  })
  .describe(
    "Open or close a circuit breaker of a queue for all of the queue's workers, or let the calls of the service determine its state again.",
  )
const QUEUE_LIMITS = [
  'concurrency',
  'rate',
  'concurrencyPerKey',
  'ratePerKey',
  'permits',
  'maxTasks',
  'maxBytes',
  'maxAge',
] as const
const TASK_LIMITS = ['concurrency'] as const
const CONCURRENCY_KEY_LIMITS = ['concurrency', 'rate'] as const
const API_KEY_LIMITS = ['enqueueRate', 'maxUnfinishedTasks'] as const
const startRate = z.strictObject({
  max: z.int().min(1).max(MAX_RATE),
  per: durationText,
  burst: z.int().min(1).max(MAX_RATE).optional(),
})
const limitSchema = z
  .strictObject({
    action: z.literal('limit'),
    queue: queue.optional(),
    apiKeyName: apiKeyNameText.optional(),
    concurrencyKey: concurrencyKeyText.optional(),
    task: taskNameText.optional(),
    concurrency: z
      .union([z.literal('none'), z.int().min(0).max(MAX_CONCURRENCY)])
      .optional()
      .describe(
        'How many tasks may run at once across all workers: those of the queue or, with `concurrencyKey` or `task`, those of the key or of the definition. A definition can be limited only if it has a `concurrency`. With 0, no task of the key or of the definition starts. With `none`, a queue has no limit, and a key or a definition has the limit of the definition again.',
      ),
    rate: z
      .union([z.literal('none'), startRate])
      .optional()
      .describe(
        'How many tasks may start per period across all workers: those of the queue or, with `concurrencyKey`, those of the key. The starts of a key are spread evenly, except that `burst` of them may start at once (default: 1).',
      ),
    concurrencyPerKey: z
      .union([z.literal('none'), concurrency])
      .optional()
      .describe(
        "How many tasks of each concurrency key may run at once across all workers. This limit replaces `perConcurrencyKey` in the queue's definition. With `none`, the definition applies again.",
      ),
    ratePerKey: z
      .union([z.literal('none'), startRate])
      .optional()
      .describe(
        "How many tasks of each concurrency key may start per period across all workers. This limit replaces `perConcurrencyKey` in the queue's definition. With `none`, the definition applies again.",
      ),
    permits: z
      .record(
        z.string().regex(SHORT_NAME, SHORT_NAME_RULE),
        z.union([z.literal('none'), z.int().min(0).max(MAX_PERMITS)]),
      )
      .refine(
        (permits) => Object.keys(permits).length > 0,
        'expected the name and the number of at least one kind of permits',
      )
      .optional()
      .describe(
        "How many permits the queue has, by name. The queue's definition must have permits with this name. A number replaces the one in the definition. With 0, no task that needs such a permit starts. With `none`, the definition applies again.",
      ),
    maxTasks: z
      .union([z.literal('none'), z.int().min(1)])
      .optional()
      .describe(
        "How many tasks may be waiting, scheduled or retrying. This limit replaces the one in the queue's definition. With `none`, the definition applies again.",
      ),
    maxBytes: z
      .union([z.literal('none'), bytesOrAmount], {
        error: "expected an amount such as '64MiB', a number of bytes, or 'none'",
      })
      .optional()
      .describe(
        "How much the tasks that have not ended may take in Redis: an amount such as `64MiB`, or a number of bytes. This limit replaces the one in the queue's definition. With `none`, the definition applies again.",
      ),
    maxAge: limitText
      .optional()
      .describe(
        "How long the task that starts next may have been waiting. This limit replaces the one in the queue's definition. With `none`, the definition applies again.",
      ),
    enqueueRate: z
      .union([z.literal('none'), z.strictObject({ max: z.int().min(1).max(MAX_ENQUEUE_RATE), per: durationText })])
      .optional()
      .describe(
        "How many tasks the API key may enqueue per period: into the queue or, without a queue, into all queues together. This limit replaces `perApiKey` in the queue's definition, or the API's setting `keyLimits`. With `none`, the definition or the setting applies again.",
      ),
    maxUnfinishedTasks: z
      .union([z.literal('none'), z.int().min(1)])
      .optional()
      .describe(
        "How many tasks of the API key may be in the queue until they end. This limit replaces `perApiKey` in the queue's definition. With `none`, the definition applies again.",
      ),
    ...commandFields,
  })
  .superRefine(checkLimits)
  .describe(
    'Limit a queue across all workers and producers, a concurrency key or a task definition in a queue, or an API key across all API processes, in one queue or in all queues together. A limit that is omitted does not change.',
  )

type LimitName = (typeof QUEUE_LIMITS)[number] | (typeof API_KEY_LIMITS)[number]

/** The targets of a limit other than a whole queue. A command limits at most one of them. */
const SUBJECTS = ['apiKeyName', 'concurrencyKey', 'task'] as const

type Limits = Readonly<Partial<Record<LimitName | 'queue' | (typeof SUBJECTS)[number], unknown>>>

type Fault = readonly [field: keyof Limits, message: string]

/** Returns what is wrong: there is no target, no limit, or a limit that the target does not have. */
function faultIn(limits: Limits): Fault | undefined {
  const { queue, apiKeyName, concurrencyKey, task } = limits
  if (queue === undefined && concurrencyKey !== undefined) {
    return ['queue', 'a concurrency key is limited in one queue; specify queue as well']
  }
  if (queue === undefined && task !== undefined)
    return ['queue', 'a task definition is limited in its queue; specify queue as well']
  if (queue === undefined && apiKeyName === undefined) return ['queue', 'specify queue, apiKeyName, or both']
  const [, second] = SUBJECTS.filter((subject) => limits[subject] !== undefined)
  if (second !== undefined) return [second, `specify only one of ${SUBJECTS.join(', ')}`]
  const [own, target] = limitsOfTarget(limits)
  const isGiven = (limit: keyof Limits): boolean => limits[limit] !== undefined
  const foreign = [...QUEUE_LIMITS, ...API_KEY_LIMITS].find((limit) => !own.includes(limit) && isGiven(limit))
  if (foreign !== undefined) return [foreign, `${foreign} is not a limit of ${target}; expected ${own.join(', ')}`]
  const [first] = own
  if (first !== undefined && !own.some(isGiven)) return [first, `specify at least one of ${own.join(', ')}`]
  if (concurrencyKey === undefined && task === undefined) {
    if (limits.concurrency === 0)
      return ['concurrency', 'expected at least 1; to start no tasks of the queue, pause it']
    if (hasBurst(limits.rate)) return ['rate', 'the rate of a queue has no burst; expected max and per']
  }
  if (queue !== undefined || !isGiven('maxUnfinishedTasks')) return undefined
  return ['maxUnfinishedTasks', 'maxUnfinishedTasks is a limit of one queue; specify queue as well']
}

function limitsOfTarget({
  apiKeyName,
  concurrencyKey,
  task,
}: Limits): readonly [own: readonly LimitName[], target: string] {
  if (apiKeyName !== undefined) return [API_KEY_LIMITS, 'an API key']
  if (task !== undefined) return [TASK_LIMITS, 'a task definition']
  return concurrencyKey === undefined ? [QUEUE_LIMITS, 'a queue'] : [CONCURRENCY_KEY_LIMITS, 'a concurrency key']
}

const hasBurst = (rate: unknown): boolean => typeof rate === 'object' && rate !== null && 'burst' in rate

function checkLimits(limits: Limits, context: z.RefinementCtx): void {
  const [field, message] = faultIn(limits) ?? []
  if (field !== undefined) context.addIssue({ code: 'custom', path: [field], message })
}

/** The body of POST /v1/commands. */
export const commandRequestSchema = z
  .discriminatedUnion(
    'action',
    [pauseSchema, resumeSchema, drainSchema, stopSchema, resizeSchema, limitSchema, breakerSchema, logLevelSchema],
    {
      error: ({ code }) =>
        code === 'invalid_union'
          ? 'expected pause, resume, drain, stop, resize, limit, breaker or log_level'
          : 'expected a JSON object',
    },
  )
  .meta({ id: 'CommandRequest' })

/** A command as the caller sends it. */
export type CommandRequest = z.input<typeof commandRequestSchema>
type Parsed = z.output<typeof commandRequestSchema>
/** A validated command without its id and author. */
export type CommandSpec = Parsed extends infer One ? (One extends Parsed ? Omit<One, 'id' | 'by'> : never) : never
export type CommandAction = Parsed['action']

/** One worker's response to a command. */
export const RESPONSE_OUTCOMES = [
  /** The worker has executed the command or, for a drain, started it. Commands are idempotent. */
  'done',
  /** The worker cannot execute the command; `detail` says why. */
  'refused',
  /** The worker has not responded yet. */
  'pending',
  /** The worker exited, or stopped sending heartbeats, before it responded. */
  'gone',
] as const

export type ResponseOutcome = (typeof RESPONSE_OUTCOMES)[number]

/** The combined outcome of a command across all workers. */
export const COMMAND_OUTCOMES = ['done', 'partly', 'refused', 'pending'] as const

export type CommandOutcome = (typeof COMMAND_OUTCOMES)[number]

const time = z.iso.datetime()

const startRateView = z.object({ max: z.int(), per: z.string(), burst: z.int().optional() })

const commandSpecSchema = z
  .object({
    action: z.enum([
      ...(['pause', 'resume', 'drain', 'stop', 'resize', 'limit', 'breaker', 'log_level'] satisfies CommandAction[]),
    ]),
    queue: z.string().optional(),
    worker: z.string().optional(),
    slot: z.int().optional(),
    mode: z.enum(DRAIN_MODES).optional(),
    timeout: z.string().optional(),
    how: z.enum(STOP_MODES).optional(),
    concurrency: z.union([z.literal('none'), z.int()]).optional(),
    concurrencyKey: z.string().optional(),
    task: z.string().optional(),
    permits: z.record(z.string(), z.union([z.literal('none'), z.int()])).optional(),
    rate: z.union([z.literal('none'), startRateView]).optional(),
    concurrencyPerKey: z.union([z.literal('none'), z.int()]).optional(),
    ratePerKey: z.union([z.literal('none'), startRateView]).optional(),
    service: z.string().optional(),
    to: z.enum(BREAKER_MODES).optional(),
    level: z.enum(COMMANDED_LEVELS).optional(),
    for: z.string().optional(),
    maxTasks: z.union([z.literal('none'), z.int()]).optional(),
    maxBytes: z.union([z.string(), z.int()]).optional(),
    maxAge: z.string().optional(),
    apiKeyName: z.string().optional(),
    enqueueRate: z.union([z.literal('none'), z.object({ max: z.int(), per: z.string() })]).optional(),
    maxUnfinishedTasks: z.union([z.literal('none'), z.int()]).optional(),
  })
  .describe('The command as it was sent, with defaults filled in.')

/** A command in the audit log. */
export const commandViewSchema = z
  .object({
    id: z.string(),
    spec: commandSpecSchema,
    by: z.string().describe("Who sent the command: the name that the caller gave, and the API key's fingerprint."),
    at: time,
    outcome: z.enum(COMMAND_OUTCOMES),
    responses: z.array(
      z.object({
        worker: z.string(),
        outcome: z.enum(RESPONSE_OUTCOMES),
        detail: z.string().optional(),
        at: time.optional(),
      }),
    ),
  })
  .meta({ id: 'Command' })

export type CommandView = z.infer<typeof commandViewSchema>

export const commandPageSchema = z.object({ commands: z.array(commandViewSchema) }).meta({ id: 'CommandPage' })

export type CommandPage = z.infer<typeof commandPageSchema>

/** The query parameters of POST /v1/commands. */
export const commandWaitSchema = z.strictObject({
  wait: waitSchema
    .default(COMMAND_WAIT_S)
    .describe('How many seconds to wait for every worker to respond, from 0 to 30.'),
})
/** The query parameters of GET /v1/commands/{id}. */
export const commandQuerySchema = z.strictObject({
  wait: waitSchema.default(0).describe('How many seconds to wait for every worker to respond, from 0 to 30.'),
})
export const commandsQuerySchema = z.strictObject({ limit: pageLimitSchema })
