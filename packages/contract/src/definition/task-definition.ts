// The contract of one task: its name, its input and output, and how it is run.
import { z } from 'zod'
import { BullpenError } from '../errors/errors.ts'
import type { Classifier } from '../errors/failure.ts'
import type { Isolation, TaskKind } from '../task/states.ts'
import { bytes, type Memory } from './bytes.ts'
import { type Limit, limitMs } from './duration.ts'
import { nearest } from './nearest.ts'
import { NAME_RULE, type OnShutdown, type QueueDefinition, queueOf } from './queue.ts'
import { type RetryOptions, type RetryPolicy, retryPolicy } from './retry-policy.ts'
import { contradictionIn } from './timeouts.ts'

/** A task's name: two or more lower-case words joined by dots, such as `files.digest-tree`. */
export type TaskName = `${string}.${string}`

interface CommonOptions<Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType> {
  readonly name: Name
  /** Of this contract; stored with every task. Default 1. */
  readonly version?: number
  /** Its name, or what {@link defineQueue} returned. */
  readonly queue: string | QueueDefinition
  /** One line for the API reference. */
  readonly summary?: string
  /** A zod object refuses unknown fields unless it says `.loose()`; objects within it do so with `z.strictObject`. */
  readonly input: Input
  readonly output: Output
  readonly retry?: RetryOptions
  /**
   * Asked before the default classifier what a thrown error means. The default declares Node's system errors, failed
   * fetches, HTTP statuses and lost database connections; what nobody declares is a panic.
   */
  readonly classify?: Classifier
}

export type OnInterrupt = 'requeue' | 'fail'

interface ShortOptions {
  /** Runs in the worker itself, untimed and unstoppable, with almost no overhead. */
  readonly kind: 'short'
}

interface LongOptions {
  /** Timed and stoppable. The default. */
  readonly kind?: 'long'
  /** From the attempt's start to its end; where an isolate must be started first, that counts. Unset: the pool's default; `'none'`: no limit. */
  readonly timeout?: Limit
  /** The longest time between two signs of life (`ctx.heartbeat()`, progress, checkpoint). Unset: the pool's default. */
  readonly heartbeatTimeout?: Limit
  /** The task's whole life, from its enqueueing over all attempts. Unset: the pool's default. */
  readonly totalTimeout?: Limit
  /** From ready to run to the first start; a task that waits longer expires without starting. Unset: the pool's default. */
  readonly queueTimeout?: Limit
  /** From the signal to the freed slot. Unset: the pool's default. */
  readonly grace?: Limit
  /**
   * Where the handler runs. Default `inline`: it shares the process, can be signalled, can't be killed. A `thread` is killed
   * after its grace, even in a loop; a `process`, too, and there a crash or too much memory ends this attempt alone.
   */
  readonly isolation?: Isolation
  /**
   * What becomes of a task whose attempt is interrupted by its worker's end: a drain, a closed parent, a hard stop. `fail`:
   * it is dead, for tasks that nobody may start again unseen. It is never said of a lost lock, which a new owner decides, nor
   * of a task that has not started. Default `requeue`: back to its queue, without using up an attempt.
   */
  readonly onInterrupt?: OnInterrupt
  /** The most memory that one attempt may take, at least '64MiB'; only with `isolation: 'process'`. Unset: Node's own limit. */
  readonly memoryLimit?: Memory
}

export type TaskOptions<Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType> = CommonOptions<
  Name,
  Input,
  Output
> &
  (ShortOptions | LongOptions)

/** What {@link defineTask} returns: frozen, with defaults filled in and durations in milliseconds. */
export interface TaskDefinition<
  Name extends TaskName = TaskName,
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
> {
  readonly name: Name
  readonly version: number
  readonly queue: string
  /** Of its queue. */
  readonly onShutdown: OnShutdown
  readonly summary: string | undefined
  readonly kind: TaskKind
  readonly input: Input
  readonly output: Output
  /** Undefined inherits the pool's default. */
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  readonly queueMs: number | 'none' | undefined
  readonly totalMs: number | 'none' | undefined
  readonly graceMs: number | 'none' | undefined
  readonly retry: RetryPolicy
  readonly classify: Classifier | undefined
  readonly isolation: Isolation
  readonly onInterrupt: OnInterrupt
  readonly memoryLimitBytes: number | undefined
}

/** What a caller sends: the input before the schema's defaults and transforms. */
export type InputOf<D extends TaskDefinition> = z.input<D['input']>
/** What a handler sees: the input after them. */
export type ParsedInputOf<D extends TaskDefinition> = z.output<D['input']>
/** What a handler returns: the output before the schema's defaults and transforms. */
export type ReturnOf<D extends TaskDefinition> = z.input<D['output']>
/** What a caller gets back. */
export type OutputOf<D extends TaskDefinition> = z.output<D['output']>

const LEAST_MEMORY = 64 * 2 ** 20
const KINDS: readonly TaskKind[] = ['short', 'long']
const ISOLATIONS: readonly Isolation[] = ['inline', 'thread', 'process']
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
  'classify',
  ...LONG_SETTINGS,
] satisfies readonly (keyof CommonOptions<TaskName, z.ZodType, z.ZodType> | keyof LongOptions)[]
const NAME = /^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$/

/**
 * Defines a task. Pure: nothing is registered anywhere.
 *
 * @throws BullpenError `invalid_definition` or `invalid_duration`, naming the task, the setting and what is right.
 */
export function defineTask<const Name extends TaskName, Input extends z.ZodType, Output extends z.ZodType>(
  options: TaskOptions<Name, Input, Output>,
): TaskDefinition<Name, Input, Output> {
  const { name, version = 1, kind = 'long' } = options
  const wrong = (message: string): never => {
    throw new BullpenError('invalid_definition', `task ${JSON.stringify(name)}: ${message}`)
  }
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) {
    const hint = nearest(unknown, SETTINGS)
    wrong(`${unknown} is not a setting of a task${hint === undefined ? '' : `; did you mean ${hint}?`}`)
  }
  if (typeof name !== 'string' || !NAME.test(name) || name.length > 80) {
    wrong("a name is two or more lower-case words joined by dots, at most 80 characters, such as 'email.welcome'")
  }
  const queue = queueOf(options.queue) ?? wrong(`queue is ${JSON.stringify(options.queue)}; ${NAME_RULE}`)
  for (const side of ['input', 'output'] as const) {
    if (typeof options[side]?.safeParse !== 'function')
      wrong(`${side} is a zod schema; got ${JSON.stringify(options[side])}`)
  }
  if (!KINDS.includes(kind)) wrong(`kind is ${JSON.stringify(kind)}; it is 'short' or 'long'`)
  if (!Number.isInteger(version) || version < 1) wrong(`version is ${version}; it is a whole number from 1`)
  if (options.classify !== undefined && typeof options.classify !== 'function') {
    wrong(`classify is ${JSON.stringify(options.classify)}; it is a function of the thrown error`)
  }
  const long: LongOptions = options.kind === 'short' ? {} : options
  if (options.kind === 'short') refuseLongSettings(options, wrong)
  const { isolation = 'inline', onInterrupt = 'requeue' } = long
  if (!ISOLATIONS.includes(isolation)) {
    wrong(`isolation is ${JSON.stringify(isolation)}; it is 'inline', 'thread' or 'process'`)
  }
  if (!ON_INTERRUPT.includes(onInterrupt)) {
    wrong(`onInterrupt is ${JSON.stringify(onInterrupt)}; it is 'requeue' or 'fail'`)
  }
  const limits = {
    timeoutMs: limitMs(long.timeout, `timeout of ${name}`),
    heartbeatMs: limitMs(long.heartbeatTimeout, `heartbeatTimeout of ${name}`),
    queueMs: limitMs(long.queueTimeout, `queueTimeout of ${name}`),
    totalMs: limitMs(long.totalTimeout, `deadline of ${name}`),
    graceMs: limitMs(long.grace, `grace of ${name}`),
  }
  const contradiction = contradictionIn(limits)
  if (contradiction !== undefined) wrong(contradiction)
  const memoryLimitBytes =
    long.memoryLimit === undefined ? undefined : bytes(long.memoryLimit, `memoryLimit of ${name}`)
  if (memoryLimitBytes !== undefined) {
    if (isolation === 'inline') wrong("memoryLimit needs a process of its own; say isolation: 'process'")
    if (isolation === 'thread') {
      wrong("memoryLimit needs isolation: 'process': V8 may abort the whole process when a thread runs out of memory")
    }
    if (memoryLimitBytes < LEAST_MEMORY) wrong(`memoryLimit is '${long.memoryLimit}'; Node itself needs '64MiB'`)
  }
  return Object.freeze({
    name,
    version,
    queue: queue.name,
    onShutdown: queue.onShutdown,
    summary: options.summary,
    kind,
    input: refusingUnknownFields(options.input),
    output: options.output,
    ...limits,
    retry: Object.freeze(retryPolicy(options.retry ?? {}, name)),
    classify: options.classify,
    isolation,
    onInterrupt,
    memoryLimitBytes,
  })
}

/** Types already refuse these; plain JavaScript and casts come by here. */
function refuseLongSettings(options: object, wrong: (message: string) => never): void {
  for (const setting of LONG_SETTINGS) {
    if (setting in options)
      wrong(`a short task is neither timed nor isolated, so it has no ${setting}; say kind: 'long'`)
  }
}

/** Dropping a misspelt field silently would lose what the caller meant. */
function refusingUnknownFields<S extends z.ZodType>(schema: S): S {
  const object: z.ZodType = schema
  if (!(object instanceof z.ZodObject) || object.def.catchall !== undefined) return schema
  const strict: z.ZodType = object.strict()
  // A copy has no entry in zod's registry: without this the description would be missing in the API reference.
  const { id: _, ...meta } = object.meta() ?? {}
  return (Object.keys(meta).length === 0 ? strict : strict.meta(meta)) as S
}
