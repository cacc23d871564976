// Who cancelled a task is in its attempt record, wherever the task was.
import { randomBytes } from 'node:crypto'
import { TaskError } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { long, setup } from '../setup.fixture.ts'
import { cancelById, repeatCancels } from './by-id.ts'

describe('a cancel by id', () => {
  it('of a waiting task records who asked', async () => {
    const { enqueue, broker } = await setup()
    const id = await enqueue(long)
    expect(await broker.cancel(id, { stoppable: true, by: 'ann smith' })).toBe('cancelled')
    expect(await broker.find(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ reason: 'cancelled', by: 'ann smith' }],
    })
  })

  it('of a running task records who asked', async () => {
    const started = Promise.withResolvers<void>()
    const { enqueue, broker, startPool, settled } = await setup({
      handle: ({ signal }) =>
        new Promise((_, reject) => {
          started.resolve()
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    const id = await enqueue(long)
    await startPool()
    await started.promise
    expect(await broker.cancel(id, { stoppable: true, by: 'ann smith' })).toBe('cancelling')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ fencingToken: 1, reason: 'cancelled', by: 'ann smith' }],
    })
  })

  it('of a running task does not search the waiting list', async () => {
    const server = await privateRedis()
    await server.start()
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys('t', 'rig')
    const id = createTaskId('rig', 0, randomBytes(10))
    await redis.hset(keys.job(id), 'name', 'rig.long')
    await redis.lpush(keys.active, id)
    await lockTask(redis, keys, id, 'a token')
    const request = { request: 'r1', id, stoppable: true, now: 0, by: '', process: 'test' }
    expect(await cancelById(redis, keys, request)).toMatchObject({ answer: 'cancelling' })
    expect(await redis.info('commandstats')).not.toContain('cmdstat_lrem')
    // The worker is lost, and the leader has not found the task yet.
    await unlockTasks(redis, keys, id)
    expect(await cancelById(redis, keys, request)).toMatchObject({ answer: 'cancelling' })
    expect(await redis.hkeys(keys.cancelling)).toEqual([id])
  })

  it('is repeated while its task runs, however many requests there are', async () => {
    const { broker, redisUrl, namespace } = await setup()
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys(namespace, 'rig')
    const requests = Array.from({ length: 1_200 }, (_, i) => [`rig-${i}`, 'ann'])
    await redis.hset(keys.cancelling, Object.fromEntries(requests))
    await broker.ping()
    await repeatCancels(redis, keys, { now: Date.now(), process: 'test', onEnded: () => {} })
    // None of these tasks exists any more.
    expect(await redis.exists(keys.cancelling)).toBe(0)
  })

  it('reports the task that it ends when it is repeated, and only once', async () => {
    const server = await privateRedis()
    await server.start()
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys('t', 'rig')
    const id = createTaskId('rig', 0, randomBytes(10))
    // The request was stored while the task ran. The task has returned to its queue since.
    await redis.hset(keys.job(id), 'name', 'rig.long')
    await redis.lpush(keys.wait, id)
    await redis.hset(keys.cancelling, id, 'ann')
    const ended: unknown[] = []
    const options = { now: 1, process: 'test', onEnded: (each: unknown) => void ended.push(each) }
    await Promise.all([repeatCancels(redis, keys, options), repeatCancels(redis, keys, options)])
    expect(ended).toEqual([{ id, task: 'rig.long' }])
    expect(await redis.exists(keys.cancelling)).toBe(0)
  })

  it('is not repeated for a task that has died and was retried since the leader read the request', async () => {
    const { broker, redisUrl, namespace, enqueue } = await setup({ leads: false })
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys(namespace, 'rig')
    const id = await enqueue(long)
    await redis.hset(keys.cancelling, id, 'ann')
    const retriedMeanwhile = new Proxy(redis, {
      get(target, name) {
        const method = Reflect.get(target, name)
        if (name !== 'hscan') return typeof method === 'function' ? method.bind(target) : method
        return async (key: string, cursor: string) => {
          const page = await target.hscan(key, cursor)
          // A retry removes the request, and returns the task to its queue.
          await target.hdel(keys.cancelling, id)
          return page
        }
      },
    })
    await repeatCancels(retriedMeanwhile, keys, { now: Date.now(), process: 'test', onEnded: () => {} })
    expect(await broker.find(id)).toMatchObject({ status: 'waiting' })
  })

  it('of an earlier run does not reach the task after its retry', async () => {
    const released = Promise.withResolvers<void>()
    const entered: string[] = []
    let isFixed = false
    const { broker, redisUrl, namespace, enqueue, startPool, settled } = await setup({
      async handle({ id, signal, input }) {
        if (!isFixed) throw new TaskError('gone', 'not there', { retryable: false })
        entered.push(id)
        const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        await Promise.race([released.promise, aborted])
        return input
      },
    })
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys(namespace, 'rig')
    await startPool()
    const id = await enqueue(long)
    await eventually(async () => (await broker.find(id))?.status === 'dead')
    isFixed = true
    expect(await broker.retry(id, { request: 'request-1', by: 'ann' })).toBe('done')
    const other = await enqueue(long)
    await eventually(() => entered.length === 2)
    // The message of a cancel that was published before the retry, and that was delayed on its way.
    await redis.publish(keys.cancelChannel, `${id} 0 bob`)
    // The pool handles its messages in order, so the end of the other task shows that the first message was handled.
    expect(await broker.cancel(other, { stoppable: true })).toBe('cancelling')
    expect(await settled(other)).toMatchObject({ status: 'cancelled' })
    released.resolve()
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2 })
  })

  it('without a name records none', async () => {
    const { enqueue, broker } = await setup()
    const id = await enqueue(long)
    await broker.cancel(id, { stoppable: true })
    const record = await eventually(() => broker.find(id))
    expect(record.attempts).toHaveLength(1)
    expect(record.attempts[0]).not.toHaveProperty('by')
  })
})
