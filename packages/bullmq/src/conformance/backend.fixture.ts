// BullMQ on a Redis, in a namespace of its own, for the suites that run against every broker.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import {
  type Breakers,
  type Consumer,
  definitionLimiter,
  HEARTBEAT_INTERVAL_MS,
  permitsLimiter,
} from '@bullpen/engine/internal'
import type { Backend, BackendOptions, OpenBackend } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, expect, inject } from 'vitest'
import { addBreakerReads, decodeBreakers, defineBreakers } from '../breakers/stored-breaker.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { workerConnection } from '../connection.ts'
import { type LockTimes, openConsumer } from '../consumer.ts'
import { applySettings } from '../fleet/queue-settings.ts'
import { leaveFleet, storeHeartbeat } from '../fleet/registry.ts'
import { capacitySetting, keyLimitSettings } from '../internals/turns/key-limits.ts'
import { setLimits } from '../internals/turns/set-limits.fixture.ts'
import { fleetKeys, type QueueKeys, queueKeys } from '../keys.ts'
import { LEADER_TIMES } from '../leader/leader.ts'
import { openLockRenewer } from '../locks/lock-renewer.ts'
import { unlockTasks } from '../locks/stored-lock.fixture.ts'
import { patternOf } from '../orphans/stored-key.ts'
import { answersOf } from '../queries/read-together.ts'
import { isCluster } from '../redis/redis-client.ts'
import { type Commander, runnerOn } from '../scripts/script.ts'

/** The lock duration is the default, so that no lock is lost on a machine under load. */
const QUICK: LockTimes = { lockMs: 5_000, renewalMs: 200 }
const QUICK_LEADER = { ...LEADER_TIMES, roundMs: 150 }

const aWorker = {
  ...{ host: 'h', pid: 1, version: '0', startedAt: 0, draining: false, skewMs: 0, drainTimeoutMs: 0, graceMs: 0 },
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Keeps the renewal thread from being started and ended with every pool of this test file. */
export function keepRenewalThread(redisUrl: string): void {
  const renewal = { ...QUICK, base: 'none', eventLoopStallLimitMs: undefined, redisUrl, slots: 1, log: silent } as const
  const renewer = openLockRenewer(renewal)
  afterAll(() => renewer.close())
}

/** On the run's shared Redis. */
export const openBullmq: OpenBackend = (options) => openBullmqOn(inject('redisUrl'), newNamespace(), options)

export const newNamespace = (): string => `t-${randomUUID().slice(0, 12)}`

export async function openBullmqOn(
  redisUrl: string,
  namespace: string,
  { queues, breakers, sizeLimit, codec, retention = {}, onExpired, locks }: BackendOptions,
): Promise<Backend> {
  const [queue = ''] = queues
  const keys = queueKeys(namespace, queue)
  const redis = workerConnection(redisUrl, silent)
  const leaderTimes = locks === 'quick' ? QUICK_LEADER : LEADER_TIMES
  const broker = openPatientBroker({
    ...{ redisUrl, namespace, queues, sizeLimit, codec, onExpired, leaderTimes, log: silent },
    ...(locks === 'quick' && { watchSchedulesEveryMs: 100 }),
  })
  const heartbeats = new Map<string, NodeJS.Timeout>()
  const consumers: { readonly worker: string; readonly consumer: Consumer }[] = []
  await eventually(() => broker.ping().then(() => true))
  const apply = (settings: readonly string[]): Promise<void> => setLimits(redis, keys, settings)
  if (breakers !== undefined) await defineBreakers(runnerOn(redis), keys, breakers, { replaces: true })
  return {
    broker,
    breakers: openBreakers(redis, keys),
    consumer:
      ({ concurrency, worker, candidates, keyLimits, capacities }) =>
      (runTask, pool) => {
        const common = {
          queue,
          namespace,
          redisUrl,
          concurrency,
          worker,
          candidates,
          keyLimits,
          capacities,
          codec,
          retention,
          breakers,
          onFollowed: () => broker.forward(queue),
          log: silent,
        }
        const consumer = openConsumer({ ...common, ...(locks === 'quick' && { locks: QUICK }) }, runTask, pool)
        consumers.push({ worker, consumer })
        return consumer
      },
    limitKeys: (limits, key) => apply(keyLimitSettings(limits, key)),
    limitPermits: (permits) =>
      apply(Object.entries(permits).flatMap(([name, count]) => capacitySetting(permitsLimiter(name), count))),
    limitDefinition: (task, concurrency) => apply(capacitySetting(definitionLimiter(task), concurrency)),
    async register(worker, pool) {
      clearInterval(heartbeats.get(worker))
      if (pool === undefined) return leaveFleet(redis, fleetKeys(namespace), worker)
      const pools = [{ ...pool, queue, stuckHandlers: 0, slots: [] }]
      const beat = (): Promise<unknown> => storeHeartbeat(redis, fleetKeys(namespace), { ...aWorker, worker, pools })
      await beat()
      heartbeats.set(
        worker,
        setInterval(() => void beat().catch(() => {}), HEARTBEAT_INTERVAL_MS),
      )
    },
    async loseLock(id) {
      await unlockTasks(redis, keys, id)
    },
    async countDeaths(id, deaths) {
      await redis.hset(keys.job(id), { stc: deaths, deaths })
    },
    async deaths(id) {
      return Number(await redis.hget(keys.job(id), 'deaths'))
    },
    async keys() {
      const nodes = isCluster(redis) ? redis.nodes('master') : [redis]
      return (await Promise.all(nodes.map((node) => node.keys(patternOf(namespace))))).flat()
    },
    async kill(name, running) {
      for (const { consumer } of consumers.filter(({ worker }) => worker === name)) {
        // The blocking connection is closed as well, because it would continue to take the markers that wake the other workers.
        void consumer.stop()
        consumer.close()
      }
      // Deletes the locks instead of waiting until they expire.
      await unlockTasks(redis, keys, ...running)
    },
    async close() {
      for (const timer of heartbeats.values()) clearInterval(timer)
      await Promise.allSettled(broker.boardQueues.map((each) => each.obliterate({ force: true })))
      await broker.close()
      redis.disconnect()
    },
  }
}

/** Reads the breakers as the API does, and sets them as its commands do. */
function openBreakers(redis: Commander, keys: QueueKeys): Breakers {
  let sequence = 0
  const list: Breakers['list'] = async (_, defined) => {
    const pipeline = redis.pipeline()
    addBreakerReads(pipeline, keys)
    const all = decodeBreakers(answersOf(await pipeline.exec())) ?? []
    return Object.keys(defined).map((service) => all.find((each) => each.service === service) ?? expect.fail(service))
  }
  return {
    list,
    async set({ queue, service, mode, by, settings }) {
      sequence += 1
      const spec = { action: 'breaker', queue, service, to: mode } as const
      await applySettings(redis, keys, { id: `${sequence}`, spec, by, sequence: `${sequence}`, at: Date.now() })
      const [status = expect.fail(service)] = await list(queue, { [service]: settings })
      return status
    },
  }
}
