// A broker and pools on the shared Redis, in a namespace of their own, with one handler for all tasks.
import { randomBytes, randomUUID } from 'node:crypto'
import {
  defineCatalogue,
  defineHandler,
  defineTask,
  type Log,
  type PerConcurrencyKey,
  type TaskContext,
  type TaskEvent,
  type TaskId,
} from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import {
  type Consumer,
  createPool,
  createRegistry,
  DEFAULT_TIMEOUTS,
  newTask,
  type Pool,
  type Retention,
} from '@bullpen/engine/internal'
import { clockOf, sha256 } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from './broker/patient-broker.fixture.ts'
import { type LockTimes, openConsumer } from './consumer.ts'
import { queueKeys } from './keys.ts'
import { LEADER_TIMES } from './leader/leader.ts'
import { unlockTasks } from './locks/stored-lock.fixture.ts'

const schemas = { input: z.object({ n: z.int().default(0) }), output: z.object({ n: z.int() }) }
export const short = defineTask({ name: 'rig.short', queue: 'rig', kind: 'short', ...schemas })
export const long = defineTask({ name: 'rig.long', queue: 'rig', timeout: '10s', ...schemas })
const catalogue = defineCatalogue(short, long)

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

export interface SetupOptions {
  readonly handle?: (context: TaskContext<typeof long>) => { n: number } | Promise<{ n: number }>
  readonly concurrency?: number
  readonly redisUrl?: string
  readonly maxStuckHandlers?: number
  readonly parent?: AbortSignal
  readonly locks?: LockTimes
  /** By default, completed tasks are kept for a minute. */
  readonly retention?: Retention
  /** The limits of concurrency keys in the workers' catalogue. */
  readonly keyLimits?: PerConcurrencyKey
  readonly capacities?: Readonly<Record<string, number>>
  /** How long the broker waits for a reply, in ms. A busy machine is no fault of the broker, so only a test of the limit sets it. */
  readonly commandTimeoutMs?: number
  /** How often the leader looks for lost tasks, in ms. */
  readonly roundMs?: number
  /** Whether the broker may lead. Defaults to true. */
  readonly leads?: boolean
  /** How often a queue is read to estimate when its new tasks start, in ms. */
  readonly readBacklogEveryMs?: number
  /** How often the leader looks for schedules in trouble, in ms. */
  readonly watchSchedulesEveryMs?: number
  readonly log?: Log
  /** The clock that stands for Redis's, in ms since 1970. */
  readonly now?: () => number
}

export async function setup({
  handle = ({ input }) => input,
  concurrency = 4,
  redisUrl = inject('redisUrl'),
  maxStuckHandlers = 10,
  parent,
  locks,
  retention = { completed: { ageMs: 60_000 } },
  keyLimits,
  capacities,
  commandTimeoutMs,
  roundMs = LEADER_TIMES.roundMs,
  leads = true,
  now = Date.now,
  readBacklogEveryMs,
  watchSchedulesEveryMs,
  log = silent,
}: SetupOptions = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const leaderTimes = { ...LEADER_TIMES, roundMs }
  const common = { redisUrl, namespace, queues: catalogue.queues, sizeLimit: 10_000, now, log }
  const broker = openPatientBroker({
    ...common,
    leads,
    leaderTimes,
    ...(commandTimeoutMs && { commandTimeoutMs }),
    ...(readBacklogEveryMs && { readBacklogEveryMs }),
    ...(watchSchedulesEveryMs && { watchSchedulesEveryMs }),
  })
  const events: TaskEvent[] = []
  const pools: Pool[] = []
  const consumers: Consumer[] = []
  const handlers = {
    'rig.short': defineHandler(short, import.meta.url, handle as never),
    'rig.long': defineHandler(long, import.meta.url, handle),
  }
  const drain = (drainMs = 5_000, graceMs = 1_000) =>
    Promise.all(pools.map((pool) => pool.drain({ drainMs, graceMs, hurry: new AbortController().signal })))

  onTestFinished(async () => {
    await drain(100, 100)
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))

  return {
    broker,
    events,
    namespace,
    redisUrl,
    drain,
    /** Another pool on the queue, as in another worker. */
    async startPool(through = redisUrl): Promise<Pool> {
      const pool = createPool({
        queue: 'rig',
        concurrency,
        maxStuckHandlers,
        graceMs: 1_000,
        parent,
        consumer: (runTask, host) => {
          const consumer = openConsumer(
            {
              queue: 'rig',
              namespace,
              redisUrl: through,
              concurrency,
              retention,
              keyLimits,
              capacities,
              log,
              clock: { now, measured: Promise.resolve() },
              ...(locks && { locks }),
            },
            runTask,
            host,
          )
          consumers.push(consumer)
          return consumer
        },
        host: {
          registry: createRegistry(catalogue, handlers, {
            timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs: 10_000, graceMs: 100 },
          }),
          context: { run: (attempt, code) => code(attempt), current: () => undefined },
          clock: clockOf({ now, at: (moment) => now() + moment - performance.now() }),
          random: () => 0.5,
          sink: (event) => events.push(event),
          enqueue: broker.enqueue,
          sha256,
          maxOutputBytes: 1_000,
          worker: `test:${pools.length}`,
          resources: {},
          logFor: () => silent,
        },
      })
      pools.push(pool)
      await pool.start()
      return pool
    },
    /**
     * Simulates that a pool's worker died while it ran these tasks. `pool` counts the pools in the order of their start, from 0.
     */
    async kill(pool: number, running: readonly TaskId[]): Promise<void> {
      // The blocking connection is closed as well, because it would continue to take the markers that wake the other workers.
      void consumers[pool]?.stop()
      consumers[pool]?.close()
      const redis = new Redis(redisUrl)
      await unlockTasks(redis, queueKeys(namespace, 'rig'), ...running)
      redis.disconnect()
    },
    async enqueue(task: typeof short | typeof long, given: Partial<NewTask> = {}): Promise<TaskId> {
      const id = given.id ?? createTaskId('rig', now(), randomBytes(10))
      const origin = { id, enqueuedAt: given.enqueuedAt ?? now(), correlationId: undefined }
      await broker.enqueue({ ...newTask(task, {}, {}, origin), maxAttempts: 3, ...given })
      return id
    },
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
  }
}
