// Opens what a worker process consists of, in the test's process: a broker that may lead, and a pool for each queue. All of its connections
// lead through a proxy, so that the process can vanish or freeze.
import type { Catalogue, Handlers } from '@bullpen/contract'
import { type Consumer, createRegistry, DEFAULT_TIMEOUTS, type Pool, type Retention } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually, faultProxy } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import type { Redis } from 'ioredis'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { openConsumer } from '../consumer.ts'
import { queueKeys } from '../keys.ts'
import { unlockTasks } from '../locks/stored-lock.fixture.ts'
import { silent } from '../setup.fixture.ts'
import { repeated } from './repeated.fixture.ts'

export interface WorkerProcessOptions<C extends Catalogue> {
  readonly name: string
  readonly redisUrl: string
  readonly namespace: string
  /** A connection that does not belong to the process. */
  readonly redis: Redis
  readonly catalogue: C
  readonly handlers: Handlers<C>
  /** How many slots the process has for each queue. */
  readonly slots: number
  readonly retention?: Retention
}

export type WorkerProcess = Awaited<ReturnType<typeof openWorkerProcess>>

/** A new leader is found, and lost tasks are requeued, within a second. The lock duration is the default. */
const LEADER_TIMES = { leaseMs: 1_000, renewMs: 200, roundMs: 100 }
const LOCKS = { lockMs: 5_000, renewalMs: 200 }
const WAKE_EVERY_MS = 50
const DRAIN = { drainMs: 20, graceMs: 200 }

export async function openWorkerProcess<C extends Catalogue>(options: WorkerProcessOptions<C>) {
  const { name, redisUrl, namespace, redis, catalogue, handlers, slots, retention = {} } = options
  const proxy = await faultProxy(redisUrl)
  const common = { redisUrl: proxy.url, namespace, log: silent }
  const { queues } = catalogue
  const broker = openPatientBroker({ ...common, queues, sizeLimit: 10_000, leaderTimes: LEADER_TIMES })
  const timeouts = { ...DEFAULT_TIMEOUTS, timeoutMs: 10_000, graceMs: 100 }
  const registry = createRegistry(catalogue, handlers, { timeouts })
  const consumers: Consumer[] = []
  const pools = queues.map((queue): Pool => {
    const settings = { clock: systemClock, queue, concurrency: slots, worker: name, graceMs: 100 }
    return testPool(
      broker,
      registry,
      (runTask, host) => {
        const onFollowed = (): void => broker.forward(queue)
        const own = { queue, concurrency: slots, worker: name, retention, locks: LOCKS, onFollowed }
        const consumer = openConsumer({ ...common, ...own, catalogueQueues: queues }, runTask, host)
        consumers.push(consumer)
        return consumer
      },
      settings,
    )
  })
  await eventually(() => broker.ping().then(() => true))
  await Promise.all(pools.map((pool) => pool.start()))
  let isLost = false
  let closed: Promise<void> | undefined

  /** Deletes the locks of the process instead of waiting until they expire. */
  const expireLocks = async (): Promise<void> => {
    isLost = true
    for (const [i, pool] of pools.entries()) {
      const ids = pool.slots().flatMap(({ task }) => task?.id ?? [])
      await unlockTasks(redis, queueKeys(namespace, queues[i] ?? ''), ...ids)
    }
  }

  let waking: NodeJS.Timeout | undefined
  const wakeWorkers = (): void => {
    for (const queue of queues) redis.zadd(queueKeys(namespace, queue).marker, 0, '0').catch(() => {})
  }

  const closeAll = async (): Promise<void> => {
    clearInterval(waking)
    for (const consumer of consumers) {
      void consumer.stop()
      consumer.close()
    }
    await Promise.allSettled(pools.map((pool) => pool.drain({ drainMs: 0, graceMs: 0 })))
    await broker.close()
    await proxy.close()
  }
  const close = (): Promise<void> => {
    closed ??= closeAll()
    return closed
  }

  return {
    name,
    /** Whether the process is dead or frozen, so that others may run its tasks. */
    isLost: () => isLost,
    isLeading: broker.isLeading,
    /** Resolves when the broker has received the replies to all that it has sent. Redis replies in the order of the commands. */
    replied: () => repeated(broker.ping),
    /** Ends the process without a word. */
    async kill() {
      // The operating system closes the connections of a dead process. Whatever the handlers do from now on does not arrive.
      proxy.reset()
      proxy.cut()
      await expireLocks()
      void close()
    },
    /** Cuts the process off from Redis for so long that its locks have expired. */
    async freeze() {
      proxy.cut()
      // Redis wakes the workers of a queue in turn, and would wake the frozen one, while the others wait for up to ten seconds.
      waking = setInterval(wakeWorkers, WAKE_EVERY_MS)
      await expireLocks()
    },
    /** Ends a freeze. What the process has sent in the meantime reaches Redis now. */
    thaw() {
      isLost = false
      clearInterval(waking)
      proxy.mend()
    },
    /** Shuts the process down as for a deploy. */
    async drain() {
      await Promise.all(pools.map((pool) => pool.drain(DRAIN)))
      await close()
    },
    /** Ends the process if it has not ended yet, and resolves when everything is closed. */
    close,
  }
}
