// The registry of queues after Redis has lost it while producers and workers were connected.

import { randomBytes, randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bareConsumer } from '../bare-consumer.fixture.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { leaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { openRegistration } from './registration.ts'

/** The lease is long, so that a busy machine does not end it. */
const QUICK = { leaseMs: 60_000, renewMs: 200, roundMs: 50 }
const RETENTION_MS = 10_000

/** A Redis of its own with a leader, a producer of the queue `produced` and a consumer of the queue `consumed`. */
async function connected(registerEveryMs?: number) {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const common = { redisUrl: server.url, namespace, log: silent, ...(registerEveryMs && { registerEveryMs }) }
  const open = async (queue: string, leads: boolean) => {
    const broker = openPatientBroker({ ...common, queues: [queue], sizeLimit: 10_000, leads, leaderTimes: QUICK })
    onTestFinished(() => broker.close())
    await eventually(() => broker.ping().then(() => true))
    return broker
  }
  const producer = await open('produced', false)
  const consumer = bareConsumer({ ...common, queue: 'consumed', retention: { completed: { ageMs: RETENTION_MS } } })
  onTestFinished(() => consumer.stop())
  await consumer.open()
  await open('led', true)
  const keys = leaderKeys(namespace)
  return {
    redis,
    keys,
    producer,
    registry: () => redis.hgetall(keys.registry),
    /** Resolves when the leader has expired a task of the producer's queue. */
    async expiresTasks(): Promise<void> {
      const id = createTaskId('produced', Date.now(), randomBytes(10))
      const task = { id, task: 'a.b', queue: 'produced', version: 1, input: {}, enqueuedAt: Date.now(), maxAttempts: 1 }
      // The fields that are left out may be undefined.
      await eventually(() => producer.enqueue({ ...task, expiresAt: Date.now() - 1 } as unknown as NewTask))
      await eventually(async () => (await producer.find(id))?.status === 'expired')
    },
  }
}

const WHOLE = { produced: '', consumed: JSON.stringify({ completed: { ageMs: RETENTION_MS } }), led: '' }

describe('after Redis has lost all data', () => {
  it('the leader visits every queue again when its processes repeat their registration', async () => {
    const { redis, registry, expiresTasks } = await connected(100)
    expect(await registry()).toEqual(WHOLE)
    await expiresTasks()
    await redis.flushall()
    await eventually(async () => Object.keys(await registry()).length === 3)
    expect(await registry()).toEqual(WHOLE)
    await expiresTasks()
  })

  it('the leader visits every queue again as soon as the connections have been established again', async () => {
    const { redis, registry, expiresTasks } = await connected()
    await expiresTasks()
    await redis.multi().flushall().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').exec()
    await eventually(async () => Object.keys(await registry()).length === 3)
    expect(await registry()).toEqual(WHOLE)
    await expiresTasks()
  })

  it('a process is refused once a newer version has claimed the namespace', async () => {
    const { redis, keys, producer } = await connected(100)
    await redis
      .multi()
      .flushall()
      .set(keys.schema, SCHEMA_VERSION + 1)
      .exec()
    const code = () =>
      producer.counts('produced').then(
        () => 'none',
        (error: { readonly code: string }) => error.code,
      )
    await eventually(async () => (await code()) === 'incompatible_schema')
    expect(await redis.exists(keys.registry, keys.lease)).toBe(0)
  })
})

it('repeating a registration does not replace the retention that another consumer has stored since', async () => {
  const { redis, keys, registry } = await connected(20)
  await redis.hset(keys.registry, 'consumed', 7)
  await redis.hdel(keys.registry, 'led', 'produced')
  await eventually(async () => Object.keys(await registry()).length === 3)
  await redis.hdel(keys.registry, 'produced')
  await eventually(async () => Object.keys(await registry()).length === 3)
  expect((await registry())['consumed']).toBe('7')
})

describe('a registration', () => {
  afterEach(() => vi.useRealTimers())

  function repeated(answers: readonly ('succeeds' | 'fails')[], tookMs = 0) {
    vi.useFakeTimers()
    const at: number[] = []
    const start = Date.now()
    const redis = new EventEmitter()
    const registration = openRegistration({
      // A registration only listens to the client's events.
      redis: redis as never,
      repeat: async () => {
        const answer = answers[at.length]
        at.push(Date.now() - start)
        if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs))
        if (answer === 'fails') throw new Error('refused')
      },
      log: silent,
      random: () => 0.5,
    })
    return { at, redis, registration }
  }

  it('is repeated every minute, and sooner when a repetition has failed', async () => {
    const { at } = repeated(['succeeds', 'fails', 'succeeds'])
    await vi.advanceTimersByTimeAsync(200_000)
    expect(at).toEqual([60_000, 120_000, 125_000, 185_000])
  })

  it.each([['succeeds'], ['fails']] as const)(
    'is repeated at once if the server changed while one that %s was under way',
    async (answer) => {
      const { at, redis } = repeated([answer, 'succeeds'], 20)
      await vi.advanceTimersByTimeAsync(60_010)
      redis.emit('ready')
      await vi.advanceTimersByTimeAsync(1_000)
      expect(at).toEqual([60_000, 60_070])
    },
  )

  it('is repeated on each connection, and not after it was closed', async () => {
    const { at, redis, registration } = repeated([])
    await vi.advanceTimersByTimeAsync(1_000)
    redis.emit('ready')
    await vi.advanceTimersByTimeAsync(59_999)
    expect(at).toEqual([1_050])
    registration.close()
    redis.emit('ready')
    await vi.advanceTimersByTimeAsync(200_000)
    expect(at).toEqual([1_050])
  })
})
