// Defines tasks: each definition contains the task's name, queue, input and output, and how the task is run.
import { z } from 'zod'
import { BullpenError } from '../errors/errors.ts'
import type { Classifier } from '../errors/failure.ts'
import { ISOLATIONS, type Isolation, type TaskKind } from '../task/states.ts'
import { DURABILITIES, type Durability } from './durability.ts'
import { FOLLOW_UP_SETTINGS, type FollowUpRules, type FollowUpSettings, followUpRules } from './follow-ups/rules.ts'
import { notJson } from './json-input.ts'
import { parseDependencies } from './limits/breakers.ts'
import { definitionConcurrency, neededPermits, type Permits } from './limits/permits.ts'
import { suggestion } from './nearest.ts'
import { MAX_PRIORITY, prioritySchema } from './priority.ts'
import { QUEUE_NAME_RULE, type QueueDefinition, queueOf } from './queue.ts'
import { type RetryOptions, type RetryPolicy, retryPolicy } from './retry/retry-policy.ts'
import { parseSlo, type Slo, type SloOptions } from './slo.ts'
import { isTaskName, TASK_NAME_RULE, type TaskName } from './task-name.ts'
import { contradictionIn } from './timeouts.ts'
import { bytes, type Memory } from './units/bytes.ts'
import { type Duration, formatDuration, type Limit, limitMs, milliseconds } from './units/duration.ts'

interface CommonOptions<Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType>
  extends FollowUpSettings<Input, Output> {
  readonly name: Name
  /** The version of this contract, which is stored with every task. Defaults to 1. */
  readonly version?: number
  /** A queue name such as `'email'`, or the result of {@link defineQueue}. */
  readonly queue: string | QueueDefinition
  /** One line that describes the task in the API reference. */
  readonly summary?: string
  /**
   * A zod schema for the input. An object rejects unknown fields unless it is `.loose()`. This applies only to the top level, so
   * use `z.strictObject` for nested objects.
   */
  readonly input: Input
  /** A zod schema for what the handler returns. Defaults to `z.void()`, for a task without an output. */
  readonly output?: Output
  /**
   * The number of attempts, the backoff and the retry budget. Defaults to 5 attempts with exponential backoff from 1 s to 5 min.
   */
  readonly retry?: RetryOptions
  /**
   * From 0 to 9. Waiting tasks with a smaller number start first. Producers can override the priority of a single task. Defaults to
   * 0. Tasks with priority 0 are also the fastest to enqueue and fetch, because tasks with any other priority are stored in a
   * sorted set.
   */
  readonly priority?: number
  /**
   * Decides what a thrown error means. It is called before the default classifier, which recognises Node's system errors,
   * failed fetches, HTTP statuses and lost database connections. An error that neither of them recognises is a panic.
   */
  readonly classify?: Classifier
  /**
   * Whether the tasks have events, which the API streams: enqueued, started, progress, log lines, retries and the end. Defaults to
   * true for a long task and to false for a short one, and to false if the queue's `events` setting is false. Each event costs
   * Redis a few microseconds.
   */
  readonly events?: boolean
  /**
   * How soon the tasks should start, for example `{ startWithin: '30s', objective: 0.99 }`: 99% of them within 30 s after they are ready.
   * Metrics count how many do, and alerts report if too few do. Defaults to the queue's `slo`.
   */
  readonly slo?: SloOptions
  /**
   * How long an attempt takes on average, such as `'2s'`. Autoscaling uses it to estimate the work in the queue until workers have
   * measured attempts. It does not limit anything.
   */
  readonly expectedDuration?: Duration
  /**
   * How many tasks of this definition may run at once, across all workers, in addition to the limits of pools and of the queue:
   * a whole number of at least 1. Tasks that may not start wait without a slot, and do not delay other tasks. By default, there
   * is no limit.
   */
  readonly concurrency?: number
  /**
   * The permits that each task needs to start, by their names in `limits.permits` of the queue, for example `{ db: 3 }`. A task
   * starts when all of them are free. By default, a task needs none.
   */
  readonly permits?: Permits
  /**
   * The services that the handler calls, for example `['smtp']`: 1 to 8 names of the queue's `breakers`. While the circuit
   * breaker of one of them is open, the tasks wait without using attempts. By default, the tasks depend on no breaker.
   */
  readonly dependsOn?: readonly string[]
  /**
   * When an enqueue of a task is acknowledged. Producers can override it for a single task. Defaults to 'primary'. It does not apply to
   * tasks that Bullpen enqueues by itself: those of schedules, groups and pipelines, and follow-ups.
   */
  readonly durability?: Durability
}

/** What happens to a task when a drain or a hard stop interrupts its attempt. */
export type OnInterrupt = 'requeue' | 'fail'

interface ShortOptions {
  /**
   * A short task runs in the worker's own thread with almost no overhead. Once it is running, it cannot be timed, cancelled or
   * interrupted.
   */
  readonly kind: 'short'
}

interface LongOptions {
  /** A long task, which is the default, can be timed, cancelled and interrupted. */
  readonly kind?: 'long'
  /**
   * The time limit for one attempt, including the time to start its isolate. Defaults to the worker's `taskTimeout`. Use `'none'`
   * for no limit.
   */
  readonly timeout?: Limit
  /**
   * The longest time between two calls of `ctx.heartbeat()`, `progress()`, `checkpoint()` or `once()`. Defaults to the worker's
   * setting.
   */
  readonly heartbeatTimeout?: Limit
  /** The time limit from enqueueing to the end of the last attempt. Defaults to the worker's setting. */
  readonly totalTimeout?: Limit
  /**
   * The longest time that a ready task may wait for its first attempt. After that, the task expires without starting. Defaults
   * to the worker's setting.
   */
  readonly queueTimeout?: Limit
  /**
   * How long a handler may keep running after its signal aborts. Its slot is freed when this time has passed. Defaults to the
   * worker's setting.
   */
  readonly grace?: Limit
  /**
   * Where the handler runs. With `inline`, the default, it runs in the worker's own thread and can be signalled but not killed.
   * With `thread`, it runs in another thread and is killed after the grace period, even in an endless loop. With `process`, it
   * runs in a child process and is killed in the same way. In addition, a crash or excessive memory use ends only this attempt. If it is
   * omitted, the worker's `poolSettings` may set another default.
   */
  readonly isolation?: Isolation
  /**
   * What happens to a task when a drain, a closed parent or a hard stop interrupts its running attempt. With `requeue`, the
   * default, the task returns to the head of its queue, and the attempt does not count. With `fail`, the task ends as dead. Use
   * `fail` for tasks that must not run again until someone has looked at them. The setting does not apply when the lock is lost,
   * because the task's new owner then decides.
   */
  readonly onInterrupt?: OnInterrupt
  /** The memory limit for one attempt, at least '64MiB'. Requires `isolation: 'process'`. Defaults to Node's own limit. */
  readonly memoryLimit?: Memory
}

export type TaskOptions<Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType> = CommonOptions<
  Name,
  Input,
  Output
> &
  (ShortOptions | LongOptions)

/** The result of {@link defineTask}: frozen, with defaults filled in and durations in milliseconds. */
export interface TaskDefinition<
  Name extends TaskName = TaskName,
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
> {
  readonly name: Name
  readonly version: number
  readonly queue: string
  /** The settings of the task's queue. */
  readonly queueSettings: QueueDefinition
  readonly summary: string | undefined
  readonly kind: TaskKind
  readonly input: Input
  readonly output: Output
  /** In this field and the four below, undefined means the worker's default. */
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  readonly queueMs: number | 'none' | undefined
  readonly totalMs: number | 'none' | undefined
  readonly graceMs: number | 'none' | undefined
  readonly retry: RetryPolicy
  readonly priority: number
  readonly classify: Classifier | undefined
  /** Whether the tasks have events. */
  readonly events: boolean
  /** How long an attempt takes on average. Undefined if the definition does not say. */
  readonly expectedMs: number | undefined
  /** The follow-ups of every task. Undefined if there are none. */
  readonly followUps: FollowUpRules | undefined
  /** How soon the tasks should start. Undefined if neither the definition nor its queue has an objective. */
  readonly slo: Slo | undefined
  readonly isolation: Isolation
  /** Whether the definition sets no isolation, so that the settings of a pool may set one. */
  readonly isIsolationOpen: boolean
  readonly onInterrupt: OnInterrupt
  readonly memoryLimitBytes: number | undefined
  /** How many tasks of the definition may run at once, across all workers. Undefined if there is no limit. */
  readonly concurrency: number | undefined
  /** How many permits of each name a task needs to start. */
  readonly permits: Permits
  /** The names of the circuit breakers that the tasks depend on, sorted. Empty if there are none. */
  readonly dependsOn: readonly string[]
  readonly durability: Durability
}

/** What a producer sends: the input before the schema applies its defaults and transforms. */
export type InputOf<D extends TaskDefinition> = z.input<D['input']>
/** What a handler receives: the input after the schema has applied its defaults and transforms. */
export type ParsedInputOf<D extends TaskDefinition> = z.output<D['input']>
/** What a handler returns: the output before the schema applies its defaults and transforms. */
export type ReturnOf<D extends TaskDefinition> = z.input<D['output']>
/** What a producer gets back: the output after the schema has applied its defaults and transforms. */
export type OutputOf<D extends TaskDefinition> = z.output<D['output']>

/** The smallest memory limit, in bytes. Node itself needs about this much. */
const MIN_MEMORY = 64 * 2 ** 20
const KINDS: readonly TaskKind[] = ['short', 'long']
const ON_INTERRUPT: readonly OnInterrupt[] = ['requeue', 'fail']
const LONG_SETTINGS = [
  'timeout',
  'heartbeatTimeout',
  'totalTimeout',
  'queueTimeout',
  'grace',
  'isolation',
  'onInterrupt',
  'memoryLimit',
] as const satisfies readonly Exclude<keyof LongOptions, 'kind'>[]
const SETTINGS: readonly string[] = [
  'name',
  'version',
  'queue',
  'kind',
  'summary',
  'input',
  'output',
  'retry',
  'priority',
  'classify',
  'events',
  'slo',
  'expectedDuration',
  'concurrency',
  'permits',
  'dependsOn',
  'durability',
  ...FOLLOW_UP_SETTINGS,
  ...LONG_SETTINGS,
] satisfies readonly (keyof CommonOptions<TaskName, z.ZodType, z.ZodType> | keyof LongOptions)[]
const NO_PERMITS: Permits = Object.freeze({})
const NO_DEPENDENCIES: readonly string[] = Object.freeze([])

/**
 * Defines a task: the contract between its producers and its handler. This function is pure: it does not register anything.
 *
 * @example
 * export const welcome = defineTask({
 *   name: 'email.welcome',
 *   queue: 'email',
 *   input: z.object({ to: z.email() }),
 *   output: z.string(),
 *   timeout: '30s',
 *   retry: { maxAttempts: 3 },
 * })
 * @throws BullpenError `invalid_definition` or `invalid_duration`. The message names the task, the setting and what is accepted.
 */
export function defineTask<const Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType = z.ZodVoid>(
  options: TaskOptions<Name, Input, Output>,
): TaskDefinition<Name, Input, Output> {
  const { name, version = 1, kind = 'long', priority = 0 } = options
  const fail = (problem: string): never => {
    throw new BullpenError('invalid_definition', `task ${JSON.stringify(name)}: ${problem}`)
  }
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) fail(`${unknown} is not a task setting${suggestion(unknown, SETTINGS)}`)
  if (!isTaskName(name)) fail(`invalid name; ${TASK_NAME_RULE}`)
  const queue = queueOf(options.queue) ?? fail(`queue is ${JSON.stringify(options.queue)}; ${QUEUE_NAME_RULE}`)
  // Without an output schema, the compiler infers Output as z.ZodVoid.
  const output = 'output' in options ? (options.output as Output) : (z.void() as z.ZodType as Output)
  const schemas = { input: options.input, output }
  for (const side of ['input', 'output'] as const) {
    if (typeof schemas[side]?.safeParse !== 'function') {
      fail(`${side} is ${JSON.stringify(schemas[side])}; expected a zod schema`)
    }
  }
  const unfit = notJson(options.input)
  if (unfit !== undefined) fail(unfit)
  if (!KINDS.includes(kind)) fail(`kind is ${JSON.stringify(kind)}; expected 'short' or 'long'`)
  if (!Number.isInteger(version) || version < 1) fail(`version is ${version}; expected a whole number of at least 1`)
  if (!prioritySchema.safeParse(priority).success) {
    fail(`priority is ${JSON.stringify(priority)}; expected a whole number from 0 to ${MAX_PRIORITY}`)
  }
  if (options.classify !== undefined && typeof options.classify !== 'function') {
    fail(`classify is ${JSON.stringify(options.classify)}; expected a function of the thrown error`)
  }
  const events = options.events ?? (kind === 'long' && queue.events !== false)
  if (typeof events !== 'boolean') fail(`events is ${JSON.stringify(events)}; expected true or false`)
  if (events && queue.events === false) fail(`events is true, but the events of queue '${queue.name}' are turned off`)
  const long: LongOptions = options.kind === 'short' ? {} : options
  if (options.kind === 'short') refuseLongSettings(options, fail)
  const { durability = 'primary' } = options
  if (!DURABILITIES.includes(durability)) {
    fail(`durability is ${JSON.stringify(durability)}; expected 'primary' or 'replicated'`)
  }
  const { isolation = 'inline', onInterrupt = 'requeue' } = long
  if (!ISOLATIONS.includes(isolation)) {
    fail(`isolation is ${JSON.stringify(isolation)}; expected 'inline', 'thread' or 'process'`)
  }
  if (!ON_INTERRUPT.includes(onInterrupt)) {
    fail(`onInterrupt is ${JSON.stringify(onInterrupt)}; expected 'requeue' or 'fail'`)
  }
  const limits = {
    timeoutMs: limitMs(long.timeout, `timeout of ${name}`),
    heartbeatMs: limitMs(long.heartbeatTimeout, `heartbeatTimeout of ${name}`),
    queueMs: limitMs(long.queueTimeout, `queueTimeout of ${name}`),
    totalMs: limitMs(long.totalTimeout, `totalTimeout of ${name}`),
    graceMs: limitMs(long.grace, `grace of ${name}`),
  }
  const expectedMs =
    options.expectedDuration === undefined
      ? undefined
      : milliseconds(options.expectedDuration, `expectedDuration of ${name}`)
  const contradiction = contradictionIn(limits)
  if (contradiction !== undefined) fail(contradiction)
  const slo = options.slo === undefined ? queue.slo : parseSlo(options.slo, name, fail)
  const retry = retryPolicy(options.retry ?? {}, name)
  refuseUnboundTotal(retry, limits.totalMs, kind, fail)
  const memoryLimitBytes =
    long.memoryLimit === undefined ? undefined : bytes(long.memoryLimit, `memoryLimit of ${name}`)
  if (memoryLimitBytes !== undefined) {
    if (isolation === 'inline') fail("memoryLimit requires isolation: 'process'")
    if (isolation === 'thread') {
      fail("memoryLimit requires isolation: 'process'; V8 may abort the whole worker when a thread runs out of memory")
    }
    if (memoryLimitBytes < MIN_MEMORY) fail(`memoryLimit is '${long.memoryLimit}'; expected at least '64MiB'`)
  }
  return Object.freeze({
    name,
    version,
    queue: queue.name,
    queueSettings: queue,
    summary: options.summary,
    kind,
    input: refusingUnknownFields(options.input),
    output,
    ...limits,
    retry: Object.freeze(retry),
    priority,
    classify: options.classify,
    events,
    expectedMs,
    followUps: followUpRules(options, fail),
    slo,
    isolation,
    isIsolationOpen: kind === 'long' && long.isolation === undefined,
    onInterrupt,
    memoryLimitBytes,
    concurrency: options.concurrency === undefined ? undefined : definitionConcurrency(options.concurrency, fail),
    permits: options.permits === undefined ? NO_PERMITS : neededPermits(options.permits, queue, fail),
    dependsOn: options.dependsOn === undefined ? NO_DEPENDENCIES : parseDependencies(options.dependsOn, queue, fail),
    durability,
  })
}

/** Rejects a bound for the total timeouts of calls that the definition's own total timeout exceeds, or that no call can use. */
function refuseUnboundTotal(
  { callBounds: { totalMs: bound } }: RetryPolicy,
  totalMs: number | 'none' | undefined,
  kind: TaskKind,
  fail: (problem: string) => never,
): void {
  if (bound === undefined) return
  if (kind === 'short') fail("retry.callBounds.totalTimeout requires kind: 'long'; a short task is not timed")
  if (totalMs === undefined || (totalMs !== 'none' && totalMs <= bound)) return
  const own = totalMs === 'none' ? totalMs : formatDuration(totalMs)
  fail(
    `retry.callBounds.totalTimeout is '${formatDuration(bound)}'; expected at least the task's totalTimeout, '${own}'`,
  )
}

/**
 * Rejects the settings that only a long task may have. The compiler rejects them too, but plain JavaScript and casts can bypass
 * it.
 */
function refuseLongSettings(options: object, fail: (problem: string) => never): void {
  for (const setting of LONG_SETTINGS) {
    if (setting in options) {
      fail(`${setting} requires kind: 'long'; a short task is neither timed nor isolated`)
    }
  }
}

/** Returns a schema that rejects unknown fields. By default, zod drops them, which would hide a misspelt field. */
function refusingUnknownFields<S extends z.ZodType>(schema: S): S {
  const object: z.ZodType = schema
  if (!(object instanceof z.ZodObject) || object.def.catchall !== undefined) return schema
  const strict: z.ZodType = object.strict()
  // The copy is not in zod's registry, so without this its description would be missing from the API reference.
  const { id: _, ...meta } = object.meta() ?? {}
  return (Object.keys(meta).length === 0 ? strict : strict.meta(meta)) as S
}
