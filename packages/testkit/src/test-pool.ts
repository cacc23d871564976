// Creates the engine's own pool with defaults for tests.

import type { Catalogue, Handlers, Log, Resources, TaskEvent } from '@bullpen/contract'
import type { Broker, Middleware } from '@bullpen/engine'
import {
  type AsyncContext,
  type Clock,
  capacitiesOf,
  createPool,
  createRegistry,
  DEFAULT_TIMEOUTS,
  type Pool,
  type PoolOptions,
  type Quarantine,
  type Random,
  type Registry,
  type Timeouts,
} from '@bullpen/engine/internal'
import { attemptContext, sha256, systemClock } from '@bullpen/engine/node'
import type { MemoryBroker } from './memory/memory-broker-options.ts'

export interface TestPoolSettings {
  readonly clock: Clock
  readonly queue: string
  /** How many slots the pool has. Defaults to 1. */
  readonly concurrency?: number
  /** The name of the pool's worker. Defaults to 'memory'. */
  readonly worker?: string
  readonly resources?: Resources
  /**
   * The pool stops fetching tasks while more than this number of handlers are still running after their attempt has ended.
   * Defaults to 100.
   */
  readonly maxStuckHandlers?: number
  /** When this signal aborts, the pool drains hard. */
  readonly parent?: AbortSignal | undefined
  /** The grace period of the drain when `parent` aborts, in ms. Defaults to 5,000. */
  readonly graceMs?: number
  /** Returns the number from 0 to 1 that sets the jitter of backoffs. By default, it is always 0.5, which means no jitter. */
  readonly random?: Random
  /** Called with every event of the pool. */
  readonly sink?: (event: TaskEvent) => void
  readonly logFor?: (fields: object) => Log
  /** The maximum size of an output, in bytes as JSON. Defaults to 1 MiB. */
  readonly maxOutputBytes?: number
  /** Finds the attempt that an uncaught error belongs to. By default, the pool creates its own async context. */
  readonly context?: AsyncContext
  /** The worker's places for quarantined tasks. By default, they run one at a time, in the pool's own thread. */
  readonly quarantine?: Quarantine | undefined
}

export interface MemoryPoolOptions<C extends Catalogue, R extends Resources>
  extends Omit<TestPoolSettings, 'resources'> {
  readonly catalogue: C
  readonly handlers: Handlers<C, R>
  readonly resources?: R
  readonly middleware?: readonly Middleware<R>[]
  /** The timeouts for definitions that set none. They default to a worker's own defaults. */
  readonly timeouts?: Partial<Timeouts>
}

/** Creates a pool that fetches from a memory broker. Start the pool and then move the clock. */
export function memoryPool<C extends Catalogue, R extends Resources>(
  broker: MemoryBroker,
  { catalogue, handlers, middleware = [], timeouts, ...settings }: MemoryPoolOptions<C, R>,
): Pool {
  const registry = createRegistry(catalogue, handlers, { middleware, timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts } })
  const { queue, concurrency = 1, worker = 'memory' } = settings
  const limits = { keyLimits: catalogue.queue(queue).perConcurrencyKey, capacities: capacitiesOf(catalogue, queue) }
  return testPool(broker, registry, broker.consumer({ queue, concurrency, worker, ...limits }), settings)
}

export interface RealTimePoolOptions<C extends Catalogue>
  extends Pick<TestPoolSettings, 'queue' | 'concurrency' | 'logFor'> {
  readonly catalogue: C
  readonly handlers: Handlers<C, Resources>
  readonly consumer: PoolOptions['consumer']
}

/** Creates a pool on the machine's clock, for a test with a real store. Its handlers cannot enqueue tasks. */
export function realTimePool<C extends Catalogue>(options: RealTimePoolOptions<C>): Pool {
  const { catalogue, handlers, consumer, ...settings } = options
  const registry = createRegistry(catalogue, handlers, { timeouts: DEFAULT_TIMEOUTS })
  const enqueue = () => Promise.reject(new Error('this pool enqueues no tasks'))
  const common = { clock: systemClock, random: Math.random, maxStuckHandlers: 10, graceMs: 500, maxOutputBytes: 1_000 }
  return testPool({ enqueue }, registry, consumer, { ...common, worker: `test:${process.pid}`, ...settings })
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

export function testPool(
  broker: Pick<Broker, 'enqueue'> & Partial<Pick<Broker, 'runs'>>,
  registry: Registry,
  consumer: PoolOptions['consumer'],
  settings: TestPoolSettings,
): Pool {
  const { queue, concurrency = 1, worker = 'memory', maxStuckHandlers = 100, parent, graceMs = 5_000 } = settings
  return createPool({
    queue,
    concurrency,
    maxStuckHandlers,
    graceMs,
    parent,
    consumer,
    quarantine: settings.quarantine,
    host: {
      registry,
      context: settings.context ?? attemptContext(),
      clock: settings.clock,
      random: settings.random ?? (() => 0.5),
      sink: settings.sink ?? (() => {}),
      enqueue: broker.enqueue,
      runs: broker.runs,
      sha256,
      maxOutputBytes: settings.maxOutputBytes ?? 2 ** 20,
      worker,
      resources: settings.resources ?? {},
      logFor: settings.logFor ?? (() => silent),
    },
  })
}
