// The recount of a queue's bytes, after plain BullMQ has added or ended tasks.
import type { TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { long, setup, short } from '../../setup.fixture.ts'
import { ALL_EVENTS_UNTIL } from '../../store/backend-events.ts'
import { bullpenBackend } from '../../store/bullpen-backend.ts'
import { createRecount, recountBytes } from './bytes-recount.ts'

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

it('a recount over several pages corrects the smallest difference', async () => {
  const { enqueue, redis, keys, recount, totals } = await openQueue()
  for (let n = 0; n < 20; n++) await enqueue(short)
  const { bytes } = await totals()
  for (const difference of [1, -1, bytes]) {
    await redis.hincrby(keys.totals, 'bytes', difference)
    expect(await recount(6)).toBe(1)
    expect(await totals()).toMatchObject({ bytes })
  }
})

it('of two recounts at the same time, one corrects a difference', async () => {
  const { enqueue, redis, keys, recount, totals } = await openQueue()
  for (let n = 0; n < 20; n++) await enqueue(short)
  const { bytes } = await totals()
  await redis.hincrby(keys.totals, 'bytes', 100)
  const corrected = await Promise.all([recount(6), recount(6), recount(7)])
  expect(corrected.reduce((sum, each) => sum + each)).toBe(1)
  expect(await totals()).toMatchObject({ bytes, drift: 1 })
})

it('a recount is exact although tasks are fetched, added, promoted and cancelled between its pages', async () => {
  const { broker, enqueue, redis, keys, plain, settled, startPool, totals } = await openQueue()
  const limits = { perApiKey: { maxUnfinishedTasks: 1_000 } }
  const ids = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      enqueue(short, {
        apiKeyName: n % 30 === 29 ? 'rare' : 'often',
        limits,
        delayMs: n % 5 === 1 ? 3_600_000 : undefined,
      }),
    ),
  )
  await redis.hincrby(keys.apiKeyTasks, 'rare', 3)
  await redis.hincrby(keys.totals, 'bytes', 7)
  const step = createRecount(redis, keys, 8)
  const between = [
    () => startPool(),
    () => settled(ids[0] as TaskId),
    () => enqueue(short, { delayMs: 1 }),
    () => enqueue(short, { priority: 3, apiKeyName: 'rare', limits }),
    async () => (await plain.getJob(ids[1] ?? ''))?.promote(),
    () => broker.cancel(ids[6] as TaskId, { stoppable: true }),
    () => enqueue(short, { apiKeyName: 'often', limits }),
  ]
  let corrected = await step()
  for (let i = 0; corrected === undefined; i++) {
    await between[i % between.length]?.().catch(() => {})
    corrected = await step()
  }
  expect(corrected).toBe(1)
  // A count in a single page is exact.
  expect(await recountBytes(redis, keys, () => false)).toBe(0)
  expect(await totals()).toMatchObject({ drift: 1 })
})

it('a recount is exact although scheduled tasks are postponed between its pages', async () => {
  const { broker, enqueue, redis, keys, totals } = await openQueue()
  const unique = (key: number) =>
    ({ key: `k${key}`, until: 'finished', onConflict: 'extend', maxDelayMs: undefined }) as const
  const [soon, later] = [3_600_000, 7_200_000]
  for (let n = 0; n < 20; n++) await enqueue(long, { unique: unique(n), delayMs: soon + n * 1_000 })
  const { bytes } = await totals()
  const step = createRecount(redis, keys, 4)
  for (let n = 0; (await step()) === undefined; n++) await enqueue(long, { unique: unique(n % 20), delayMs: later + n })
  expect(await totals()).toMatchObject({ bytes, drift: 0 })
  expect(await broker.counts('rig')).toMatchObject({ scheduled: 20 })
})

it('a recount of several pages asks for the events of moves, and counts what starts and ends meanwhile', async () => {
  const { namespace, redisUrl, enqueue, redis, keys, totals } = await openQueue()
  const options = { connection: { url: redisUrl }, prefix: prefixOf(namespace, 'rig'), autorun: false }
  const worker = new Worker('rig', async () => {}, options, bullpenBackend())
  onTestFinished(() => worker.close(true))
  const start = async (n: number) => (await worker.getNextJob(`token-${n}`, { block: false })) ?? expect.fail()
  for (let n = 0; n < 20; n++) await enqueue(short)
  const running = [await start(0), await start(1), await start(2), await start(3)]
  await redis.hset(keys.meta, ALL_EVENTS_UNTIL, 1)
  const step = createRecount(redis, keys, 3)
  expect(await step()).toBeUndefined()
  // The first page has shown that there are more, and is read again.
  await running[0]?.moveToCompleted(undefined, 'token-0', false)
  for (let n = 4; (await step()) === undefined; n++) if (n < 12) await start(n)
  expect(await totals()).toMatchObject({ drift: 0 })
  expect(await recountBytes(redis, keys, () => false)).toBe(0)
})

it('a difference that keeps growing is corrected by what it was before the first count', async () => {
  const { enqueue, redis, keys, recount } = await openQueue()
  const limits = { perApiKey: { maxUnfinishedTasks: 1_000 } }
  for (let n = 0; n < 20; n++) await enqueue(short, { apiKeyName: 'shop', limits })
  await redis.hincrby(keys.apiKeyTasks, 'shop', 5)
  const step = createRecount(redis, keys, 6)
  while ((await step()) === undefined) await redis.hincrby(keys.apiKeyTasks, 'shop', 1)
  const left = Number(await redis.hget(keys.apiKeyTasks, 'shop')) - 20
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(10)
  expect(await recount(6)).toBe(1)
  expect(await redis.hgetall(keys.apiKeyTasks)).toEqual({ shop: '20' })
})

it('a recount leaves the sums as they are if the event stream loses events again and again', async () => {
  const { enqueue, redis, keys, recount, totals } = await openQueue()
  for (let n = 0; n < 20; n++) await enqueue(short)
  await redis.hincrby(keys.totals, 'bytes', 100)
  const step = createRecount(redis, keys, 6)
  let corrected = await step()
  for (; corrected === undefined; corrected = await step()) {
    await enqueue(short)
    await redis.xtrim(keys.events, 'MAXLEN', 1)
  }
  expect(corrected).toBe(0)
  const { bytes, drift } = await totals()
  expect(drift).toBe(0)
  expect(await recount(6)).toBe(1)
  expect(await totals()).toMatchObject({ bytes: bytes - 100 })
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
