// A stage for one test: a broker of its own, pools on it, one handler for every task, and all events.
import { randomBytes } from 'node:crypto'
import {
  type CallOptions,
  defineCatalogue,
  defineHandler,
  defineTask,
  type Handlers,
  type InputOf,
  type TaskContext,
  type TaskDefinition,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { createRegistry, DEFAULT_TIMEOUTS, newTask, type Pool } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { OpenBackend } from './backend.ts'

export const QUEUE = 'rig'

const common = {
  queue: QUEUE,
  input: z.object({ n: z.int().default(0) }),
  output: z.object({ n: z.int() }),
  retry: { maxAttempts: 3, backoff: { initialDelay: '20ms', jitter: 0 } },
} as const
export const short = defineTask({ name: 'rig.short', kind: 'short', ...common })
export const long = defineTask({ name: 'rig.long', timeout: '10s', ...common })
/** Dead when its worker ends under it. */
export const fragile = defineTask({ name: 'rig.fragile', timeout: '10s', onInterrupt: 'fail', ...common })
/** Whatever it is given and returns is stored. */
export const plain = defineTask({ ...common, name: 'rig.plain', input: z.unknown(), output: z.unknown() })
export const child = defineTask({ name: 'rig.child', ...common })
const catalogue = defineCatalogue(short, long, fragile, plain, child)

export type Context = TaskContext<typeof long>
export type Handle = (context: Context) => unknown

export interface StageOptions {
  /** Of every task. Default: returns its input. */
  readonly handle?: Handle
  /** Of each pool. Default 4. */
  readonly concurrency?: number
  readonly maxStuckHandlers?: number
  readonly parent?: AbortSignal
  readonly locks?: 'quick' | 'usual'
}

/** In bytes. */
export const SIZE_LIMIT = 10_000

const DRAIN = { drainMs: 5_000, graceMs: 1_000 }

export async function openStage(open: OpenBackend, options: StageOptions = {}) {
  const { handle = ({ input }) => input, concurrency = 4, maxStuckHandlers = 10, parent, locks = 'usual' } = options
  const clock = systemClock
  const expired: TaskId[] = []
  const onExpired = ({ id }: { id: TaskId }) => expired.push(id)
  const backend = await open({ queues: catalogue.queues, sizeLimit: SIZE_LIMIT, onExpired, locks, clock })
  const { broker } = backend
  const events: TaskEvent[] = []
  const pools: Pool[] = []
  onTestFinished(async () => {
    await Promise.all(pools.map((pool) => pool.drain({ drainMs: 0, graceMs: 100 })))
    await backend.close()
  })

  // One function for all of them: what it is given and returns differs by the task that is enqueued.
  const handlers = Object.fromEntries(
    catalogue.definitions.map((task) => [task.name, defineHandler(task, import.meta.url, handle as never)]),
  ) as unknown as Handlers<typeof catalogue>
  const registry = createRegistry(catalogue, handlers, {
    limits: { ...DEFAULT_TIMEOUTS, timeoutMs: 10_000, graceMs: 100 },
  })

  const put = async (task: NewTask): Promise<TaskId> => {
    await broker.enqueue(task)
    return task.id
  }
  const made = <D extends TaskDefinition>(definition: D, input: InputOf<D>, call: CallOptions = {}): NewTask => {
    const now = Date.now()
    const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
    return newTask(definition, input, call, { id, enqueuedAt: now, correlationId: undefined })
  }
  const find = async (id: TaskId): Promise<TaskRecord> => {
    const record = await broker.find(id)
    if (record === undefined) throw new Error(`${id} is not there`)
    return record
  }

  const make = (process = 'test:1'): Pool => {
    const feed = backend.feed({ concurrency, process })
    const sink = (event: TaskEvent) => events.push(event)
    const settings = { clock, queue: QUEUE, concurrency, process, maxStuckHandlers, parent, graceMs: 1_000 }
    const pool = testPool(broker, registry, feed, { ...settings, sink, maxOutputBytes: 1_000 })
    pools.push(pool)
    return pool
  }

  return {
    backend,
    broker,
    events,
    /** Found by the sweep. */
    expired,
    find,
    /** A task that is not enqueued yet. */
    made,
    put,
    enqueue: <D extends TaskDefinition>(definition: D, input: InputOf<D>, call?: CallOptions) =>
      put(made(definition, input, call)),
    pool: make,
    async start(process?: string): Promise<Pool> {
      const pool = make(process)
      await pool.start()
      return pool
    },
    drain: (limits: { readonly drainMs?: number; readonly graceMs?: number } = {}) =>
      Promise.all(pools.map((pool) => pool.drain({ ...DRAIN, ...limits }))),
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(15_000)),
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

/** A wait is counted from the end, and written down a little later. In ms. */
export function expectAbout(waitMs: number, meantMs: number): void {
  expect(waitMs).toBeGreaterThanOrEqual(meantMs - 1)
  expect(waitMs).toBeLessThan(2 * meantMs)
}

/** A handler that runs until it is let go, or is told to end. */
export function gate() {
  const opened = Promise.withResolvers<void>()
  const entered: TaskId[] = []
  const handle: Handle = async ({ id, signal, input }) => {
    entered.push(id)
    await Promise.race([
      opened.promise,
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
    return input
  }
  return { entered, handle, open: () => opened.resolve(), holds: (n: number) => eventually(() => entered.length === n) }
}
