// A pool for tests: the engine's own, with something sensible for all that a test does not say.

import type { Catalogue, Handlers, Log, Resources, TaskEvent } from '@bullpen/contract'
import type { Broker, Middleware } from '@bullpen/engine'
import {
  type AsyncContext,
  type Clock,
  createPool,
  createRegistry,
  DEFAULT_TIMEOUTS,
  type Pool,
  type PoolOptions,
  type Random,
  type Registry,
  type Timeouts,
} from '@bullpen/engine/internal'
import { attemptContext, sha256 } from '@bullpen/engine/node'
import type { MemoryBroker } from './memory/memory-broker.ts'

export interface TestPoolSettings {
  readonly clock: Clock
  readonly queue: string
  /** How many tasks run at once. Default 1. */
  readonly concurrency?: number
  /** The name of the process that it stands for. Default 'memory'. */
  readonly process?: string
  readonly resources?: Resources
  /** Handlers that may go on after their attempt has ended, before the pool takes no more tasks. Default 100. */
  readonly maxStuckHandlers?: number
  readonly parent?: AbortSignal | undefined
  /** For a drain by the parent's end, in ms. Default 5,000. */
  readonly graceMs?: number
  /** From 0 (included) to 1 (excluded). Default: always 0.5, so that no wait is changed by its jitter. */
  readonly random?: Random
  /** Hears of all that happens in it. */
  readonly sink?: (event: TaskEvent) => void
  readonly logFor?: (fields: object) => Log
  /** The most bytes that an output may take as JSON. Default 1 MiB. */
  readonly maxOutputBytes?: number
  /** For errors that escape handlers; `chargeEscape` finds their attempts through it. */
  readonly context?: AsyncContext
}

export interface MemoryPoolOptions<C extends Catalogue, R extends Resources>
  extends Omit<TestPoolSettings, 'resources'> {
  readonly catalogue: C
  readonly handlers: Handlers<C, R>
  readonly resources?: R
  readonly middleware?: readonly Middleware<R>[]
  /** For what a definition leaves out; what is left out here: the worker's own defaults. */
  readonly limits?: Partial<Timeouts>
}

/** A pool that takes its tasks from a memory broker; start it, and move the clock. */
export function memoryPool<C extends Catalogue, R extends Resources>(
  broker: MemoryBroker,
  { catalogue, handlers, middleware = [], limits, ...settings }: MemoryPoolOptions<C, R>,
): Pool {
  const registry = createRegistry(catalogue, handlers, { middleware, limits: { ...DEFAULT_TIMEOUTS, ...limits } })
  const { queue, concurrency = 1, process = 'memory' } = settings
  return testPool(broker, registry, broker.feed({ queue, concurrency, process }), settings)
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

export function testPool(
  broker: Pick<Broker, 'enqueue'>,
  registry: Registry,
  feed: PoolOptions['consumer'],
  settings: TestPoolSettings,
): Pool {
  const { queue, concurrency = 1, process = 'memory', maxStuckHandlers = 100, parent, graceMs = 5_000 } = settings
  return createPool({
    queue,
    concurrency,
    maxStuckHandlers,
    graceMs,
    parent,
    consumer: feed,
    host: {
      registry,
      context: settings.context ?? attemptContext(),
      clock: settings.clock,
      random: settings.random ?? (() => 0.5),
      sink: settings.sink ?? (() => {}),
      enqueue: broker.enqueue,
      sha256,
      maxOutputBytes: settings.maxOutputBytes ?? 2 ** 20,
      worker: process,
      resources: settings.resources ?? {},
      logFor: settings.logFor ?? (() => silent),
    },
  })
}
