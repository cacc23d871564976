// Tests what is read of the head of a queue.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { setup, short } from '../setup.fixture.ts'

function client(): Redis {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  return redis
}

it('the oldest waiting task counts from the moment when it was ready, and a paused queue is reported as paused', async () => {
  const { broker, enqueue, namespace } = await setup()
  const redis = client()
  const keys = queueKeys(namespace, 'rig')
  const waiting = { oldest: undefined, nextReadyAt: undefined, blockedTasks: 0, oldestBlocked: undefined }
  const empty = { ...waiting, isPaused: false, isDraining: false }
  expect(await broker.head('rig')).toEqual(empty)
  const first = await enqueue(short)
  await enqueue(short)
  const enqueuedAt = Number(await redis.hget(keys.job(first), 'timestamp'))
  const oldest = { id: first, task: short.name, enqueuedAt, readyAt: enqueuedAt }
  expect(await broker.head('rig')).toEqual({ ...empty, oldest, nextReadyAt: enqueuedAt })
  await redis.hset(keys.meta, 'paused', '1')
  expect(await broker.head('rig')).toMatchObject({ oldest, isPaused: true })
  await redis.hset(keys.job(first), 'opts', '{"delay":5000}')
  expect(await broker.head('rig')).toMatchObject({
    oldest: { id: first, readyAt: enqueuedAt + 5_000 },
    nextReadyAt: enqueuedAt + 5_000,
  })
  await redis.hset(keys.job(first), 'processedOn', 7)
  expect(await broker.head('rig')).toMatchObject({ oldest: { id: first, readyAt: 7 }, nextReadyAt: 7 })
})

it('a dead task that was retried counts from the retry, not from the enqueueing', async () => {
  const { broker, enqueue, namespace, startPool } = await setup({
    handle: () => {
      throw new TaskError('declined', 'no', { retryable: false })
    },
  })
  const redis = client()
  const keys = queueKeys(namespace, 'rig')
  const id = await enqueue(short)
  const pool = await startPool()
  await eventually(async () => (await broker.counts('rig')).dead === 1)
  await pool.drain({ drainMs: 0, graceMs: 0 })
  await redis.hset(keys.job(id), 'timestamp', 5)
  await broker.retry(id, { request: 'r1', by: 'ann' })
  const [retry] = JSON.parse((await redis.hget(keys.job(id), 'retries')) ?? '[]') as { readonly at: number }[]
  expect(retry?.at).toBeGreaterThan(5)
  expect(await broker.head('rig')).toMatchObject({ oldest: { id, readyAt: retry?.at }, nextReadyAt: retry?.at })
})

it("the delay of a plain BullMQ job's backoff is not the delay of the job", async () => {
  const { broker, enqueue, namespace } = await setup()
  const redis = client()
  const keys = queueKeys(namespace, 'rig')
  const id = await enqueue(short)
  await redis.hset(keys.job(id), 'timestamp', 5, 'opts', '{"attempts":3,"backoff":{"type":"fixed","delay":60000}}')
  expect(await broker.head('rig')).toMatchObject({ oldest: { id, readyAt: 5 }, nextReadyAt: 5 })
})

it('a task with a priority is the head only if no other task is waiting', async () => {
  const { broker, enqueue, namespace, startPool } = await setup()
  const redis = client()
  const keys = queueKeys(namespace, 'rig')
  const urgent = await enqueue(short, { priority: 1 })
  await redis.hset(keys.job(urgent), 'timestamp', 5)
  const oldest = { id: urgent, readyAt: 5 }
  expect(await broker.head('rig')).toMatchObject({ oldest, nextReadyAt: 5 })
  const plain = await enqueue(short)
  await redis.hset(keys.job(plain), 'timestamp', 9)
  expect(await broker.head('rig')).toMatchObject({ oldest, nextReadyAt: 9, oldestBlocked: undefined })
  await startPool()
  await eventually(async () => (await broker.head('rig')).nextReadyAt === undefined)
})

it('while workers take tasks quickly, the head is a task that has not started', async () => {
  const { broker, enqueue, namespace, startPool } = await setup()
  const redis = client()
  const keys = queueKeys(namespace, 'rig')
  const ids = await Promise.all(Array.from({ length: 200 }, () => enqueue(short)))
  // Long ago, so that a task that has started stands out
  for (const id of ids) await redis.hset(keys.job(id), 'timestamp', 5)
  await startPool()
  const seen: (number | undefined)[] = []
  do seen.push((await broker.head('rig')).nextReadyAt)
  while (seen.at(-1) !== undefined)
  expect(seen.filter((readyAt) => readyAt !== 5 && readyAt !== undefined)).toEqual([])
})
