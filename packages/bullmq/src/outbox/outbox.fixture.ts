// A source queue whose tasks have follow-ups in a target queue, on the shared Redis in a namespace of its own.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineCatalogue, defineTask, type FollowUps, followUp, type TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask, planFollowUps } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { ageClaims } from './age-claims.fixture.ts'
import { followUpDeliveries } from './follow-up-deliveries.ts'
import { createForwarder, type Forwarder, queueOutbox } from './forwarder.ts'
import { createTargetQueues } from './target-queues.ts'

export const input = z.object({ n: z.int().default(0) })
export const source = defineTask({ name: 'source.task', queue: 'source', input })
export const target = defineTask({ name: 'target.task', queue: 'target', input })
export const catalogue = defineCatalogue(source, target)

/** Opens the two queues. No process leads, so nothing is forwarded unless the test does. */
export async function openQueues(redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const common = { redisUrl, namespace, queues: catalogue.queues, sizeLimit: 100_000, log: silent }
  const broker = openPatientBroker({ ...common, leads: false })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const keys = { source: queueKeys(namespace, 'source'), target: queueKeys(namespace, 'target') }

  const enqueue = async (followUps: FollowUps = { onEnd: [followUp(target, {})] }, more = {}): Promise<TaskId> => {
    const now = Date.now()
    const id = createTaskId('source', now, randomBytes(10))
    const planned = planFollowUps(followUps, { catalogue, correlationId: undefined })
    const origin = { id, enqueuedAt: now, correlationId: undefined }
    await broker.enqueue({ ...newTask(source, {}, {}, origin), ...more, followUps: planned })
    return id
  }

  return {
    broker,
    redis,
    redisUrl,
    namespace,
    keys,
    outbox: queueOutbox(redis, keys.source),
    enqueue,
    /** Ends this many tasks, each of which has a follow-up. */
    async release(count: number): Promise<void> {
      for (let i = 0; i < count; i++) await broker.cancel(await enqueue(), { stoppable: true })
    },
    entries: () => redis.xlen(keys.source.outbox),
    /** Returns how many tasks were ever added to the target. */
    added: async () => (await broker.totals('target')).accepted,
    /** Deletes the target's tasks, as if they had run and were not kept. */
    async runTargets(): Promise<void> {
      const ids = await redis.lrange(keys.target.wait, 0, -1)
      if (ids.length > 0) await redis.del(keys.target.wait, ...ids.map(keys.target.job))
    },
    /** Makes every claim old enough for another process to take it over. */
    ageClaims: () => ageClaims(redis, [keys.source.outbox]),
    /** A forwarder with a connection of its own. */
    forwarder(through = redisUrl) {
      const own = new Redis(through, { maxRetriesPerRequest: null })
      own.on('error', () => {})
      const targets = createTargetQueues(own, namespace)
      onTestFinished(async () => {
        own.disconnect()
      })
      const refused: unknown[] = []
      const onRefused = ({ error }: { readonly error: unknown }) => refused.push(error)
      const forwarder: Forwarder = createForwarder({
        deliveries: {
          task: followUpDeliveries({ targets, now: Date.now, onForwarded() {}, onRefused }),
          // The tests have no groups and no pipelines.
          memberEnd: async () => {},
          member: async () => {},
          groupCancel: async () => {},
          runTaskEnd: async () => {},
        },
        onUnreadable() {},
      })
      const outbox = queueOutbox(own, keys.source)
      return {
        refused,
        outbox,
        wake: () => forwarder.wake(outbox),
        settled: forwarder.settled,
        forwardLeft: () => forwarder.forwardLeft(outbox, () => false),
      }
    },
  }
}
