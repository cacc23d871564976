// Sets up one test: its own broker with pools, one handler for every task, and a record of all events.
import { randomBytes } from 'node:crypto'
import {
  type CallOptions,
  defineCatalogue,
  defineHandler,
  defineQueue,
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  defineTask,
  type FollowUps,
  type InputOf,
  type PerConcurrencyKey,
  type SourceFunction,
  type TaskContext,
  type TaskDefinition,
  TaskError,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, toHandlers } from '@bullpen/contract/internal'
import type { NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type Candidates,
  type Clock,
  createQuarantine,
  createRegistry,
  DEFAULT_TIMEOUTS,
  type Isolator,
  newTask,
  type Pool,
  planFollowUps,
  type Quarantine,
  type Registry,
  type Retention,
} from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { OpenBackend } from './backend.ts'

export const QUEUE = 'conformance'

/** An empty outbox. */
export const NO_ENTRIES = { entries: 0, oldestAt: undefined }

/** The weights of concurrency keys that are not 1. */
export const WEIGHTS = { heavy: 3, light: 0.5 } as const

/**
 * Counts the tasks of each API key, so that child tasks are counted for their parents' keys, and lets concurrency keys take turns, which
 * only tasks with such a key notice.
 */
const queue = defineQueue({
  name: QUEUE,
  limits: { perApiKey: { maxUnfinishedTasks: 1_000 } },
  fairness: { weights: WEIGHTS },
})

const common = {
  queue,
  input: z.object({ n: z.int().default(0) }),
  output: z.object({ n: z.int() }),
  retry: { maxAttempts: 3, backoff: { initialDelay: '20ms', jitter: 0 } },
} as const
export const short = defineTask({ name: 'conformance.short', kind: 'short', ...common })
export const long = defineTask({ name: 'conformance.long', timeout: '1m', ...common })
/** A task that is dead if its worker stops while it runs. */
export const fragile = defineTask({ name: 'conformance.fragile', timeout: '1m', onInterrupt: 'fail', ...common })
/** A task that accepts every input and output. */
export const plain = defineTask({ ...common, name: 'conformance.plain', input: z.unknown(), output: z.unknown() })
/** A short task that has events. */
export const loud = defineTask({ name: 'conformance.loud', kind: 'short', events: true, ...common })
export const child = defineTask({ name: 'conformance.child', ...common })
/** A task in another queue, which has room for a single task and whose tasks are never run. */
export const AFTER = 'conformance-after'
export const after = defineTask({
  ...common,
  name: 'conformance.after',
  queue: defineQueue({ name: AFTER, limits: { maxTasks: 1 } }),
})
/** How many follow-ups of each kind a task of {@link ruled} has. */
const ruleCounts = z.object({
  n: z.int(),
  success: z.int().default(0),
  failure: z.int().default(0),
  end: z.int().default(0),
})
const RULES = [0, 1, 2]
/** A task whose follow-ups its definition makes from its input. Their inputs are 100, 101, … and 200, … and 300, …, plus 10 times `n`. */
export const ruled = defineTask({
  ...common,
  name: 'conformance.ruled',
  timeout: '1m',
  input: ruleCounts,
  onSuccess: (followUp) =>
    RULES.map((i) =>
      followUp(after, ({ input, output }) => ({ n: 100 + i + 10 * (input.n + output.n) }), {
        when: ({ input }) => input.success > i,
      }),
    ),
  onFailure: (followUp) =>
    RULES.map((i) =>
      followUp(after, ({ input }) => ({ n: 200 + i + 10 * input.n }), {
        when: ({ input: { failure = 0 } }) => failure > i,
      }),
    ),
  onEnd: (followUp) =>
    RULES.map((i) =>
      followUp(after, ({ input }) => ({ n: 300 + i + 10 * input.n }), { when: ({ input: { end = 0 } }) => end > i }),
    ),
})
/** A task that is followed by another one like it until its input is 0. */
export const countdown: TaskDefinition = defineTask({
  ...common,
  name: 'conformance.countdown',
  kind: 'short',
  retry: { maxAttempts: 1 },
  onSuccess: (followUp) => [
    followUp(
      (): TaskDefinition => countdown,
      ({ input }) => ({ n: input.n - 1 }),
      { when: ({ input }) => input.n > 0 },
    ),
  ],
})
/** A task whose follow-ups are nested and go to a queue that is full. */
export const nesting = defineTask({
  ...common,
  name: 'conformance.nesting',
  onFailure: (followUp) => [
    followUp(ruled, ({ input: { n = 0 } }) => ({ n, failure: 1, end: 1 }), { delay: '1h', tags: ['nested'] }),
  ],
})
/** The source of a pipeline, which yields the numbers from 0 to `count`. */
export const numbers = defineSource({
  name: 'conformance.numbers',
  queue,
  input: z.object({ count: z.int() }),
  item: z.object({ n: z.int() }),
  retry: common.retry,
})
const number = z.object({ n: z.int() })
/** The end of a pipeline, which returns the numbers that have arrived, one by one or in batches. */
export const gather = defineReducer({
  name: 'conformance.gather',
  queue,
  input: z.object({ count: z.int() }),
  item: z.union([number, z.array(number)]),
  output: z.object({ ns: z.array(z.int()) }),
  retry: common.retry,
})
const catalogue = defineCatalogue(
  short,
  long,
  fragile,
  plain,
  child,
  loud,
  after,
  ruled,
  countdown,
  nesting,
  numbers,
  gather,
)

const yieldNumbers: SourceFunction<typeof numbers> = function* ({ count }) {
  for (let n = 0; n < count; n++) yield { n }
}

export type Context = TaskContext<typeof long>
export type Handle = (context: Context) => unknown

export interface SetupOptions {
  /** The handler for every task. By default, it returns its input. */
  readonly handle?: Handle
  /** The source of pipelines. By default, it yields numbers. */
  readonly source?: SourceFunction<typeof numbers>
  /** How many slots each pool has. Defaults to 4. */
  readonly concurrency?: number
  readonly maxStuckHandlers?: number
  /** The maximum size of an output, in bytes of JSON. Defaults to 1,000. */
  readonly maxOutputBytes?: number
  readonly parent?: AbortSignal
  readonly locks?: 'quick' | 'usual'
  /** The limits of concurrency keys in the workers' catalogue. */
  readonly keyLimits?: PerConcurrencyKey
  /** The capacities of the queue's limiters in the workers' catalogue. */
  readonly capacities?: Readonly<Record<string, number>>
  readonly codec?: PayloadCodec
  readonly retention?: Retention
  /** Runs quarantined tasks in child processes, as many at once as `max`. By default, each of them runs alone. */
  readonly processes?: { readonly max: number; readonly isolator: Isolator }
  /** Replaces how long a worker waits for more tasks that may run together. By default, it waits in real time. */
  readonly gather?: Gathering
}

export interface Gathering {
  /** The timer for the wait. */
  readonly after: Clock['after']
  /** Called for each quarantined task that has got a place. */
  onPlace(): void
}

function gathering(quarantine: Quarantine, { onPlace }: Gathering): Quarantine {
  return {
    ...quarantine,
    enter(deaths, apart) {
      const decision = quarantine.enter(deaths, apart)
      if (decision.kind === 'run') onPlace()
      return decision
    },
  }
}

/** The maximum size of a task's stored data, in bytes. */
export const SIZE_LIMIT = 10_000

const DRAIN = { drainMs: 5_000, graceMs: 1_000 }

export async function openSetup(open: OpenBackend, options: SetupOptions = {}) {
  const {
    handle = ({ input }) => input,
    source = yieldNumbers,
    concurrency = 4,
    maxStuckHandlers = 10,
    maxOutputBytes = 1_000,
    parent,
    keyLimits,
    capacities,
    locks = 'usual',
    codec,
    retention,
    processes,
    gather: gathers,
  } = options
  const clock = systemClock
  const expired: TaskId[] = []
  const onExpired = ({ id }: { id: TaskId }) => expired.push(id)
  const kept = { sizeLimit: SIZE_LIMIT, codec, retention }
  const backend = await open({ queues: catalogue.queues, ...kept, onExpired, locks, clock })
  const { broker } = backend
  const events: TaskEvent[] = []
  const pools: Pool[] = []
  onTestFinished(async () => {
    await Promise.all(pools.map((pool) => pool.drain({ drainMs: 0, graceMs: 100 })))
    await backend.close()
  })

  // One function handles every task, although their inputs and outputs differ.
  const handlers = toHandlers(catalogue, {
    ...Object.fromEntries(
      catalogue.definitions.map((task) => [task.name, defineHandler(task, import.meta.url, handle as never)]),
    ),
    [numbers.name]: defineSourceHandler(numbers, import.meta.url, source),
    [gather.name]: defineReduceHandler(gather, import.meta.url, (items) => ({ ns: items.flat().map(({ n }) => n) })),
  })
  const registry = createRegistry(catalogue, handlers, {
    timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs: 60_000, graceMs: 100 },
    quarantine: processes && { isolator: processes.isolator, fits: async () => true, memoryLimitBytes: 2 ** 30 },
  })

  const enqueueTask = async (task: NewTask): Promise<TaskId> => {
    await broker.enqueue(task)
    return task.id
  }
  const create = <D extends TaskDefinition>(
    definition: D,
    input: InputOf<D>,
    call: CallOptions & FollowUps = {},
    origin: Partial<Pick<NewTask, 'correlationId' | 'traceContext'>> = {},
  ): NewTask => {
    const now = Date.now()
    const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
    const { correlationId, traceContext } = origin
    const followUps = planFollowUps(call, { catalogue, correlationId, traceContext })
    return newTask(definition, input, call, { id, enqueuedAt: now, correlationId, traceContext, followUps })
  }
  const find = async (id: TaskId): Promise<TaskRecord> => {
    const record = await broker.find(id)
    if (record === undefined) throw new Error(`task ${id} not found`)
    return record
  }

  const createPool = (worker = 'test:1', candidates?: Candidates, unknown: readonly string[] = []): Pool => {
    const limits = { keyLimits, capacities }
    const consumer = backend.consumer({ concurrency, worker, ...limits, ...(candidates && { candidates }) })
    const sink = (event: TaskEvent) => events.push(event)
    const settings = { clock, queue: QUEUE, concurrency, worker, maxStuckHandlers, parent, graceMs: 1_000 }
    const own = createQuarantine({
      clock: { ...clock, ...(gathers && { after: gathers.after }) },
      random: Math.random,
      maxProcesses: processes?.max ?? 0,
    })
    const quarantine = gathers === undefined ? own : gathering(own, gathers)
    const known: Registry = { ...registry, get: (name) => (unknown.includes(name) ? undefined : registry.get(name)) }
    const pool = testPool(broker, known, consumer, { ...settings, quarantine, sink, maxOutputBytes })
    pools.push(pool)
    return pool
  }

  return {
    backend,
    broker,
    catalogue,
    events,
    /** Tasks that the sweep has expired. */
    expired,
    find,
    /** Creates a task without enqueueing it. */
    create,
    enqueueTask,
    enqueue: <D extends TaskDefinition>(definition: D, input: InputOf<D>, call?: CallOptions & FollowUps) =>
      enqueueTask(create(definition, input, call)),
    /** Creates a pool without starting it. With `candidates`, it fetches only these. */
    pool: createPool,
    /** Starts a worker, whose catalogue lacks the tasks with the `unknown` names. */
    async start(worker?: string, unknown?: readonly string[]): Promise<Pool> {
      const pool = createPool(worker, undefined, unknown)
      await pool.start()
      return pool
    },
    drain: (limits: { readonly drainMs?: number; readonly graceMs?: number } = {}) =>
      Promise.all(pools.map((pool) => pool.drain({ ...DRAIN, ...limits }))),
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
    reaches: (id: TaskId, status: TaskStatus) =>
      eventually(async () => {
        const record = await find(id)
        return record.status === status && record
      }),
    async idsOf(status: TaskStatus, limit = 200): Promise<readonly TaskId[]> {
      const ids: TaskId[] = []
      let cursor: string | undefined
      do {
        const page = await broker.list({ queue: QUEUE, status, limit, cursor })
        ids.push(...page.tasks.map(({ id }) => id))
        cursor = page.next
      } while (cursor !== undefined)
      return ids
    },
  }
}

/** How much later than its end an attempt may be stored on a busy machine, in ms. */
const STORED_WITHIN_MS = 30_000

/** Expects a wait to be as long as intended, in ms. A wait counts from the time at which the end of the attempt is stored. */
export function expectAbout(waitMs: number, meantMs: number): void {
  expect(waitMs).toBeGreaterThanOrEqual(meantMs - 1)
  expect(waitMs).toBeLessThan(meantMs + STORED_WITHIN_MS)
}

/** A handler that dies with the input 13, and otherwise returns its input. */
export const unlucky: Handle = ({ input }) => {
  if (input.n === 13) throw new TaskError('unlucky', 'thirteen', { retryable: false })
  return input
}

/** Rejects when the attempt is stopped. */
export function untilStopped({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

/** Creates a handler that runs until the gate opens or its attempt is signalled. */
export function gate() {
  const opened = Promise.withResolvers<void>()
  const entered: TaskId[] = []
  const handle: Handle = async (context) => {
    entered.push(context.id)
    await Promise.race([opened.promise, untilStopped(context)])
    return context.input
  }
  return { entered, handle, open: () => opened.resolve(), holds: (n: number) => eventually(() => entered.length === n) }
}
