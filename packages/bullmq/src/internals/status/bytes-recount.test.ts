// The recount of a queue's bytes, after plain BullMQ has added or ended tasks.
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { setup, short } from '../../setup.fixture.ts'
import { recountBytes } from './bytes-recount.ts'

async function openQueue(options: Parameters<typeof setup>[0] = { leads: false }) {
  const all = await setup(options)
  const redis = new Redis(all.redisUrl, { maxRetriesPerRequest: null })
  const plainOptions = { connection: redis, prefix: prefixOf(all.namespace, 'rig') }
  const plain = new Queue('rig', plainOptions)
  onTestFinished(async () => {
    await plain.close()
    redis.disconnect()
  })
  const keys = queueKeys(all.namespace, 'rig')
  return {
    ...all,
    redis,
    keys,
    plain,
    recount: (limit?: number) => recountBytes(redis, keys, () => false, limit),
    totals: () => all.broker.totals('rig'),
    /** Completes one task with plain BullMQ, which does not settle its charge. */
    async completeOne(): Promise<void> {
      const worker = new Worker('rig', async () => 1, { ...plainOptions, autorun: false })
      const job = await worker.getNextJob('token')
      await job?.moveToCompleted(1, 'token', false)
      await worker.close()
    },
  }
}

it('a recount of a queue that only Bullpen has used changes nothing, in one page or in several', async () => {
  const { enqueue, recount, totals } = await openQueue()
  for (let n = 0; n < 12; n++) await enqueue(short, n % 3 === 0 ? { delayMs: 3_600_000 } : { priority: n % 3 })
  const { bytes } = await totals()
  expect(bytes).toBeGreaterThan(12 * 512)
  for (const limit of [1, 5, 12, 1_000]) expect(await recount(limit)).toBe(0)
  expect(await totals()).toMatchObject({ bytes, drift: 0 })
})

it('a recount settles a task that plain BullMQ has completed, and charges one that it has added', async () => {
  const { enqueue, plain, redis, keys, completeOne, recount, totals } = await openQueue()
  for (let n = 0; n < 3; n++) await enqueue(short)
  const one = (await totals()).bytes / 3
  await completeOne()
  expect(await totals()).toMatchObject({ bytes: 3 * one })
  expect(await recount()).toBe(1)
  expect(await totals()).toMatchObject({ bytes: 2 * one, drift: 1 })
  await plain.add('x', { text: 'y'.repeat(300) }, { jobId: 'added' })
  expect(await recount()).toBe(1)
  expect(await totals()).toMatchObject({ bytes: 2 * one + 512 + (await redis.hstrlen(keys.job('added'), 'data')) })
})

it('a recount over several pages leaves a small difference, which tasks that move meanwhile may cause', async () => {
  const { enqueue, redis, keys, recount, totals } = await openQueue()
  for (let n = 0; n < 20; n++) await enqueue(short)
  const { bytes } = await totals()
  await redis.hincrby(keys.totals, 'bytes', Math.round(0.01 * bytes))
  expect(await recount(6)).toBe(0)
  await redis.hincrby(keys.totals, 'bytes', Math.round(0.1 * bytes))
  expect(await recount(6)).toBe(1)
  expect((await totals()).bytes).toBe(bytes)
  await redis.hincrby(keys.totals, 'bytes', 1)
  expect(await recount()).toBe(1)
  expect((await totals()).bytes).toBe(bytes)
})

it('the leader soon corrects a sum that cannot be right', async () => {
  const { enqueue, redis, keys, completeOne, totals } = await openQueue({})
  await enqueue(short)
  const { bytes } = await totals()
  for (const wrong of [0, -5]) {
    await redis.hset(keys.totals, 'bytes', wrong)
    await eventually(async () => (await totals()).bytes === bytes)
  }
  await completeOne()
  await eventually(async () => (await totals()).bytes === 0)
})

it('a recount corrects how many unfinished tasks an API key has', async () => {
  const { enqueue, redis, keys, completeOne, recount } = await openQueue()
  const limits = { perApiKey: { maxUnfinishedTasks: 100 } }
  for (let n = 0; n < 12; n++) await enqueue(short, { apiKeyName: n % 3 === 0 ? 'shop' : 'other', limits })
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '4', other: '8' })
  for (const limit of [5, 1_000]) expect(await recount(limit)).toBe(0)
  await completeOne()
  expect(await recount()).toBe(1)
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '3', other: '8' })
  await redis.hset(keys.apiKeyTasks, 'gone', 5, 'other', 100)
  expect(await recount(4)).toBe(1)
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '3', other: '8', gone: '5' })
  expect(await recount()).toBe(1)
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '3', other: '8' })
  await redis.del(keys.apiKeyTasks)
  expect(await recount()).toBe(1)
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '3', other: '8' })
})

it('the leader soon forgets the tasks of an API key in an empty queue', async () => {
  const { redis, keys } = await openQueue({})
  await redis.hset(keys.apiKeyTasks, 'shop', 3)
  await eventually(async () => (await redis.exists(keys.apiKeyTasks)) === 0)
})
