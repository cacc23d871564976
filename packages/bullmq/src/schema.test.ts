// What a namespace that another version of Bullpen wrote does to a broker, a fleet and a consumer.
import { randomUUID } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bareConsumer } from './bare-consumer.fixture.ts'
import { openBroker } from './broker/broker.ts'
import { openFleet } from './fleet/fleet.ts'
import { prefixOf } from './keys.ts'
import { silent } from './setup.fixture.ts'

/** An empty namespace with one queue, and what opens it. */
function setup(redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  redis.on('error', () => {})
  const queue = new Queue('q', {
    connection: { url: redisUrl },
    prefix: prefixOf(namespace, 'q'),
    skipMetasUpdate: true,
  })
  queue.on('error', () => {})
  onTestFinished(async () => {
    redis.disconnect()
    await queue.close()
  })
  const options = { redisUrl, namespace, log: silent }
  return {
    namespace,
    redis,
    queue,
    openBroker() {
      const broker = openBroker({ ...options, queues: ['q'], sizeLimit: 10_000 })
      onTestFinished(() => broker.close())
      return broker
    },
    openFleet() {
      const fleet = openFleet({ ...options, queues: ['q'] })
      onTestFinished(() => fleet.close())
      return fleet
    },
    openConsumer() {
      const consumer = bareConsumer({ ...options, queue: 'q' })
      onTestFinished(() => consumer.stop())
      return consumer
    },
  }
}

/** The first answer that is not about a connection that is still being made. */
async function answerOf(call: () => Promise<unknown>): Promise<unknown> {
  return eventually(async () => {
    const error = await call().then(
      () => ({ code: 'none' }),
      (thrown: { readonly code: string }) => thrown,
    )
    return error.code === 'redis_unavailable' ? undefined : error
  })
}

const LEGACY_ERROR = {
  code: 'incompatible_schema',
  message: expect.stringMatching(
    /^namespace 't-.*' was written by Bullpen 0\.1\.0 \(schema 1\); this version requires schema 3: use another namespace, or drain this one with that version and delete its keys$/,
  ),
}

/** As 0.1.0's broker added it. */
const legacyJob = { v: 1, version: 1, input: {} }

describe('a namespace that Bullpen 0.1.0 wrote', () => {
  it.each([
    [
      'a worker had registered in',
      async ({ redis, namespace }: ReturnType<typeof setup>) => redis.zadd(`{${namespace}}:fleet:beats`, 1, 'w'),
    ],
    [
      'whose queue had been drained',
      async ({ redis, namespace }) => redis.hset(`{${namespace}.q}:q:switches`, 'drain', '{}'),
    ],
    [
      'whose queue a worker had consumed',
      async ({ redis, namespace }) => redis.zadd(`{${namespace}.q}:q:cancel-feeds`, 1, 'f'),
    ],
    ['with a waiting task', async ({ queue }) => queue.add('t', legacyJob, { backoff: { type: 'bullpen' } })],
    [
      'with a scheduled task',
      async ({ queue }) => queue.add('t', legacyJob, { backoff: { type: 'bullpen' }, delay: 60_000 }),
    ],
  ] satisfies [string, (stage: ReturnType<typeof setup>) => Promise<unknown>][])(
    '%s is refused by the broker, the fleet and the consumer',
    async (_, write) => {
      const stage = setup()
      await write(stage)
      const [broker, fleet, consumer] = [stage.openBroker(), stage.openFleet(), stage.openConsumer()]
      expect(await answerOf(() => broker.ping())).toMatchObject(LEGACY_ERROR)
      expect(await answerOf(() => broker.counts('q'))).toMatchObject(LEGACY_ERROR)
      await expect(consumer.open()).rejects.toMatchObject({ code: 'incompatible_schema' })
      // The fleet sees its own keys, and those of its queues.
      expect(await answerOf(() => fleet.workers())).toMatchObject(LEGACY_ERROR)
      expect(await stage.redis.exists(`{${stage.namespace}}:schema`)).toBe(0)
    },
  )

  it('is used again once its keys are deleted', async () => {
    const { redis, namespace, openBroker } = setup()
    await redis.zadd(`{${namespace}}:fleet:beats`, 1, 'w')
    const broker = openBroker()
    expect(await answerOf(() => broker.ping())).toMatchObject(LEGACY_ERROR)
    await redis.del(`{${namespace}}:fleet:beats`)
    expect(await answerOf(() => broker.ping())).toEqual({ code: 'none' })
  })

  it('is refused when Redis comes back, if Redis is unreachable at the start', async () => {
    const server = await privateRedis()
    await server.start()
    const { redis, namespace, openBroker } = setup(server.url)
    await redis.zadd(`{${namespace}}:fleet:beats`, 1, 'w')
    await redis.save()
    await server.crash()
    const broker = openBroker()
    await expect(broker.ping()).rejects.toMatchObject({ code: 'redis_unavailable' })
    await server.start()
    expect(await answerOf(() => broker.ping())).toMatchObject(LEGACY_ERROR)
  })
})

describe('a namespace', () => {
  it('gets one schema version when several processes open it at once', async () => {
    const { redis, namespace, openBroker, openFleet, openConsumer } = setup()
    const brokers = Array.from({ length: 5 }, openBroker)
    const fleets = Array.from({ length: 5 }, openFleet)
    const answers = await Promise.all([
      ...brokers.map((broker) => answerOf(() => broker.ping())),
      ...fleets.map((fleet) => answerOf(() => fleet.commands(1))),
      answerOf(openConsumer().open),
    ])
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set(['{"code":"none"}']))
    expect(await redis.get(`{${namespace}}:schema`)).toBe('3')
  })

  it('of an earlier build of 0.2.0 is refused, which would take running tasks for lost', async () => {
    const { redis, namespace, openBroker } = setup()
    await redis.set(`{${namespace}}:schema`, '2')
    const broker = openBroker()
    expect(await answerOf(() => broker.ping())).toMatchObject({
      code: 'incompatible_schema',
      message: expect.stringContaining('was written by an earlier build of Bullpen 0.2.0 (schema 2)'),
    })
  })

  it('of a newer version is refused with the advice to upgrade', async () => {
    const { redis, namespace, openBroker } = setup()
    await redis.set(`{${namespace}}:schema`, '4')
    const broker = openBroker()
    expect(await answerOf(() => broker.ping())).toMatchObject({
      code: 'incompatible_schema',
      message: expect.stringContaining('written by a newer Bullpen (schema 4)'),
    })
  })

  it('with jobs of a team’s own Queue is new to Bullpen', async () => {
    const { queue, openBroker } = setup()
    await queue.add('theirs', legacyJob, { attempts: 3, backoff: { type: 'exponential', delay: 1 } })
    const broker = openBroker()
    expect(await answerOf(() => broker.ping())).toEqual({ code: 'none' })
  })
})
