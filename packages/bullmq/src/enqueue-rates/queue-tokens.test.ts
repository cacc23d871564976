// Tests the tokens of an API key in several queues on a real Redis.
import { randomUUID } from 'node:crypto'
import type { QueueLimits } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { openFleet } from '../fleet/fleet.ts'
import { queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'

const HOUR = 3_600_000
const QUEUES = ['a', 'b', 'free']

async function rig() {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({ redisUrl, namespace, queues: QUEUES, sizeLimit: 10_000, log: silent })
  onTestFinished(async () => {
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const bucket = (queue: string) => queueKeys(namespace, queue).apiKeyRates
  /** Takes tokens of rates that are not refilled during a test. */
  const take = async (...wanted: readonly (readonly [queue: string, max: number | undefined, tokens: number])[]) =>
    broker.takeInQueues(
      'shop',
      wanted.map(([queue, max, tokens]) => ({ queue, limits: max === undefined ? undefined : limitsOf(max), tokens })),
    )
  return {
    ...{ redisUrl, namespace, redis, broker, bucket, take },
    /** Returns how many tokens are in a bucket, in whole numbers. */
    left: async (queue: string) => Math.floor(Number((await redis.hget(bucket(queue), 'shop'))?.split(' ')[0]) + 0.01),
  }
}

function limitsOf(max: number): QueueLimits {
  return { perApiKey: { enqueueRate: { max, perMs: HOUR } } }
}

const refusal = (queue: string) => ({ code: 'enqueue_rate_exceeded', reached: { apiKeyName: 'shop', queue } })

it('tokens are taken in every queue with a rate, and given back where they are not needed', async () => {
  const { take, left, redis, bucket } = await rig()
  const giveBack = await take(['a', 10, 4], ['free', undefined, 4], ['b', 5, 2])
  expect([await left('a'), await left('b')]).toEqual([6, 3])
  expect(await redis.exists(bucket('free'))).toBe(0)
  await giveBack?.(
    new Map([
      ['a', 3],
      ['free', 4],
    ]),
  )
  expect([await left('a'), await left('b')]).toEqual([9, 3])
})

it('no queue has more tokens than its rate permits at once, however many are given back', async () => {
  const { take, left } = await rig()
  const giveBack = await take(['a', 10, 4])
  await giveBack?.(new Map([['a', 7]]))
  expect(await left('a')).toBe(10)
})

it('if a queue refuses, the queues before it get their tokens back', async () => {
  const { take, left } = await rig()
  await take(['b', 5, 4])
  await expect(take(['b', 5, 2], ['a', 10, 4])).rejects.toMatchObject(refusal('b'))
  expect([await left('a'), await left('b')]).toEqual([10, 1])
})

it('if a queue fails, the queues before it get their tokens back', async () => {
  const { take, left, redis, bucket } = await rig()
  await redis.set(bucket('b'), 'not a hash')
  await expect(take(['a', 10, 4], ['b', 5, 2])).rejects.toThrow('WRONGTYPE')
  expect(await left('a')).toBe(10)
})

it('two requests for the same queues never refuse each other', async () => {
  const { take, broker } = await rig()
  for (let round = 0; round < 20; round++) {
    const name = `key-${round}`
    const limits = limitsOf(1)
    const [a, b] = ['a', 'b'].map((queue) => ({ queue, limits, tokens: 1 }))
    if (a === undefined || b === undefined) throw new Error('no queues')
    const both = [
      [a, b],
      [b, a],
    ].map(async (wanted) => broker.takeInQueues(name, wanted))
    const results = await Promise.allSettled(both)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  }
  expect(await take(['free', undefined, 1])).toBeUndefined()
})

it('a command sets the rate of a queue without one, also for a process that has not read it', async () => {
  const { take, redisUrl, namespace } = await rig()
  const fleet = openFleet({ redisUrl, namespace, queues: QUEUES, commandTimeoutMs: 30_000, log: silent })
  onTestFinished(() => fleet.close())
  await eventually(() => fleet.commands(1).then(() => true))
  const enqueueRate = { max: 1, per: '1h' }
  await fleet.send({ id: 'c1', spec: { action: 'limit', queue: 'free', apiKeyName: 'shop', enqueueRate }, by: 'me' })
  const other = openPatientBroker({ redisUrl, namespace, queues: QUEUES, sizeLimit: 10_000, log: silent })
  onTestFinished(() => other.close())
  await eventually(() => other.ping().then(() => true))
  const wanted = [{ queue: 'free', limits: undefined, tokens: 1 }]
  expect(await other.takeInQueues('shop', wanted)).toBeDefined()
  await eventually(() =>
    take(['free', undefined, 1]).then(
      () => false,
      ({ code }) => code === 'enqueue_rate_exceeded',
    ),
  )
})

it('a request whose queues have no rate takes no round trip, once the settings of the queues are known', async () => {
  const { take, broker } = await rig()
  const wanted = QUEUES.map((queue) => ({ queue, limits: undefined, tokens: 1 }))
  await take(['a', undefined, 1], ['b', undefined, 1], ['free', undefined, 1])
  expect(broker.takeInQueues('shop', wanted)).toBeUndefined()
})
