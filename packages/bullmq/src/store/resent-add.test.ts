// An add whose reply is lost: it is sent again, and the caller that has stored the task learns that it created the task.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { Caller } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { COMMAND_TIMEOUT_MS } from '../connection.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { long, type SetupOptions, setup, short } from '../setup.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'

/** A broker behind a proxy. Its pools connect directly. */
async function behindProxy(options: SetupOptions = {}) {
  const redisUrl = inject('redisUrl')
  const proxy = await faultProxy(redisUrl)
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  const all = await setup({ ...options, redisUrl: proxy.url })
  const keys = queueKeys(all.namespace, 'rig')
  const queue = new Queue('rig', { connection: redis, prefix: prefixOf(all.namespace, 'rig') }, bullpenBackend())
  return {
    ...all,
    redis,
    keys,
    proxy,
    startPool: () => all.startPool(redisUrl),
    /** Deletes a task through a Queue of its own, which connects to Redis directly. */
    async deleteTask(id: string): Promise<void> {
      expect(await queue.remove(id)).toBe(1)
    },
    /**
     * Runs `send` so that the reply to the first add is lost and the add is sent again. `stored` is the number of tasks after the
     * first add, and `meanwhile` runs before the second one.
     */
    async losingTheReply<T>(send: () => Promise<T>, stored: number, meanwhile?: () => Promise<unknown>): Promise<T> {
      proxy.cutAnswers()
      const answer = send()
      await eventually(async () => (await redis.hget(keys.totals, 'accepted')) === `${stored}`)
      await meanwhile?.()
      proxy.reset()
      return answer
    },
  }
}

const task = (caller: Caller | undefined) =>
  newTask(
    long,
    { n: 3 },
    {},
    {
      id: createTaskId('rig', Date.now(), randomBytes(10)),
      enqueuedAt: Date.now(),
      correlationId: undefined,
      caller,
    },
  )

describe('an enqueue whose reply is lost', () => {
  it.each(['only', { token: '1' }] as const)('is answered as created for the caller %j', async (caller) => {
    const { broker, losingTheReply, redis, keys } = await behindProxy()
    await broker.enqueue(task(undefined))
    const wanted = task(caller)
    expect(await losingTheReply(() => broker.enqueue(wanted), 2)).toEqual({ id: wanted.id, action: 'created' })
    expect(await redis.hget(keys.totals, 'accepted')).toBe('2')
  })

  it('is rejected if Redis hangs, and is answered as created when the call is repeated', async () => {
    const { broker, proxy } = await behindProxy({ commandTimeoutMs: COMMAND_TIMEOUT_MS })
    const wanted = task('only')
    const first = task('only')
    await eventually(() => broker.enqueue(first))
    proxy.cutAnswers()
    await expect(broker.enqueue(wanted)).rejects.toMatchObject({
      code: 'redis_unavailable',
      message: expect.stringContaining('did not respond within 800 ms'),
    })
    proxy.mend()
    const repeated = { ...wanted, isRepeat: true }
    expect(await eventually(() => broker.enqueue(repeated))).toEqual({ id: wanted.id, action: 'created' })
    expect((await eventually(() => broker.totals('rig'))).accepted).toBe(2)
  })

  it.each([
    // An atomic call runs another script. The first call of any kind reads the queue's settings.
    ['the first call of the script', 'enqueueAll'],
    ['a later call of the script', 'enqueueBulk'],
  ] as const)('stores nothing when it is sent again after the task was deleted: %s', async (_, before) => {
    const { broker, deleteTask, losingTheReply, redis, keys } = await behindProxy()
    await broker[before]([task('only')])
    const wanted = task('only')
    const enqueued = await losingTheReply(
      () => broker.enqueue(wanted),
      2,
      () => deleteTask(wanted.id),
    )
    expect(enqueued).toEqual({ id: wanted.id, action: 'created' })
    expect(await redis.exists(keys.job(wanted.id))).toBe(0)
    expect(await redis.hget(keys.totals, 'accepted')).toBe('2')
  })

  it('of several tasks, all or none, stores nothing when it is sent again after the tasks were deleted', async () => {
    const { broker, deleteTask, losingTheReply, redis, keys } = await behindProxy()
    await broker.enqueue(task('only'))
    const wanted = Array.from({ length: 8 }, () => task('only'))
    const ids = wanted.map(({ id }) => id)
    const enqueued = await losingTheReply(
      () => broker.enqueueAll(wanted),
      9,
      () => Promise.all(ids.map(deleteTask)),
    )
    expect(enqueued).toEqual(ids.map((id) => ({ id, action: 'created' })))
    expect(await redis.hget(keys.totals, 'accepted')).toBe('9')
    expect(await redis.llen(keys.wait)).toBe(1)
  })

  it('of several tasks, all or none, is answered as created, and every task is stored once', async () => {
    const { broker, losingTheReply, redis, keys } = await behindProxy()
    await broker.enqueueAll([task('only')])
    const wanted = Array.from({ length: 20 }, () => task('only'))
    const created = wanted.map(({ id }) => ({ id, action: 'created' }))
    expect(await losingTheReply(() => broker.enqueueAll(wanted), 21)).toEqual(created)
    expect(await redis.hget(keys.totals, 'accepted')).toBe('21')
  })

  it('stores nothing of its caller if the id is random', async () => {
    const { broker, redis, keys } = await behindProxy()
    const wanted = task('only')
    await broker.enqueue(wanted)
    expect(await redis.hexists(keys.job(wanted.id), 'caller')).toBe(0)
  })

  it('of a child task is reported as one enqueued task', async () => {
    const enqueueing = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const { broker, enqueue, startPool, settled, losingTheReply, events } = await behindProxy({
      handle: async ({ enqueue, input }) => {
        if (input.n === 1) return { n: 1 }
        enqueueing.resolve()
        await goOn.promise
        const { action } = await enqueue(short, { n: 1 })
        return { n: action === 'created' ? 1 : 0 }
      },
    })
    const parent = await enqueue(long)
    await startPool()
    await enqueueing.promise
    await losingTheReply(async () => {
      goOn.resolve()
      await eventually(() => events.some(({ event }) => event === 'task.enqueued'))
    }, 2)
    expect(await settled(parent)).toMatchObject({ status: 'completed', output: { n: 1 } })
    expect(events.filter(({ event }) => event === 'task.enqueued')).toMatchObject([{ task: short.name }])
    expect(await broker.totals('rig')).toMatchObject({ accepted: 2 })
  })
})
