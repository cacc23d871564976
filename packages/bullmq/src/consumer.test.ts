// The consumer: released tasks, fetching that fails, commits that Redis does not confirm, and its lifecycle.
import type { FetchedTask, RunTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bareConsumer } from './bare-consumer.fixture.ts'
import type { ConsumerOptions } from './consumer.ts'
import { queueKeys } from './keys.ts'
import { unlockTasks } from './locks/stored-lock.fixture.ts'
import { long, setup, short } from './setup.fixture.ts'

afterEach(() => vi.restoreAllMocks())

describe('a task that no slot takes', () => {
  it('is released as if it had not been fetched: its next attempt is still the first', async () => {
    const { enqueue, redisUrl, namespace, broker } = await setup()
    const id = await enqueue(short)
    const offered: FetchedTask[] = []
    const runTask: RunTask = async (task, commit, release) => {
      offered.push(task)
      if (offered.length === 1) return release()
      const end = {
        fencingToken: task.fencingToken,
        attempt: task.attempt,
        counted: true,
        state: 'DONE_SUCCESS' as const,
        worker: 'p',
        startedAt: 1,
        endedAt: 2,
      }
      const event = {
        event: 'attempt.ended' as const,
        queue: 'rig',
        task: task.task,
        id: task.id,
        kind: 'short' as const,
        fencingToken: task.fencingToken,
        attempt: task.attempt,
        correlationId: undefined,
        state: end.state,
        reason: undefined,
        code: undefined,
        error: undefined,
        durationMs: 1,
        verdict: 'completed' as const,
        delayMs: undefined,
      }
      return commit({ event, record: end, verdict: { kind: 'completed', output: { n: 1 } }, error: undefined })
    }
    const consumer = bareConsumer({ redisUrl, namespace }, runTask)
    await consumer.open()
    const running = consumer.run()
    await eventually(async () => (await broker.find(id))?.status === 'completed')
    expect(offered.map(({ fencingToken, attempt, readyAt }) => [fencingToken, attempt, readyAt !== undefined])).toEqual(
      [
        [1, 1, true],
        [1, 1, true],
      ],
    )
    expect(await broker.find(id)).toMatchObject({ fencingToken: 1, attemptsMade: 1 })
    await consumer.stop()
    await running
  })
})

describe('a release', () => {
  it.each([
    ['is reported once Redis has returned the task to its queue', true],
    ['is not reported if the lock is lost by then, because the task may have another owner', false],
  ])('%s', async (_, hasLock) => {
    const { enqueue, redisUrl, namespace, broker } = await setup({ leads: false })
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const id = await enqueue(short)
    const offered = Promise.withResolvers<void>()
    const statuses: Promise<string | undefined>[] = []
    const runTask: RunTask = async (_task, _commit, release) => {
      if (!hasLock) await unlockTasks(redis, queueKeys(namespace, 'rig'), id)
      offered.resolve()
      return release()
    }
    const consumer = bareConsumer({ redisUrl, namespace }, runTask, {
      released: () => void statuses.push(broker.find(id).then((found) => found?.status)),
    })
    await consumer.open()
    void consumer.run()
    await offered.promise
    expect(statuses).toEqual([])
    // Fetches nothing more, and waits for the release.
    await consumer.stop()
    expect(await Promise.all(statuses)).toEqual(hasLock ? ['waiting'] : [])
  })
})

describe('a task whose queue timeout expires while a worker has it', () => {
  /** The worker releases the task after the leader has looked at its queue timeout, and then fetches nothing more. */
  async function releasedLate(earlierStarts: number) {
    const { broker, enqueue, redisUrl, namespace } = await setup({ roundMs: 50 })
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys(namespace, 'rig')
    const id = await enqueue(long, { queueMs: 60_000, expiresAt: Date.now() + 60_000 })
    // The leader has stored the time if the timeout expired during the first of the earlier starts.
    if (earlierStarts > 0) await redis.hset(keys.job(id), { ats: earlierStarts, expiresAt: Date.now() })
    const runTask: RunTask = async (_task, _commit, release) => {
      await redis.zadd(keys.expiries, Date.now(), id)
      await eventually(async () => (await redis.zcard(keys.expiries)) === 0)
      void consumer.stop()
      return release()
    }
    const released = Promise.withResolvers<void>()
    const consumer = bareConsumer({ redisUrl, namespace }, runTask, { released: () => released.resolve() })
    await consumer.open()
    void consumer.run()
    await released.promise
    return { find: () => broker.find(id), indexed: () => redis.zcard(keys.expiries) }
  }

  it('expires if the worker releases it before its first start', async () => {
    const { find } = await releasedLate(0)
    await eventually(async () => (await find())?.status === 'expired')
    expect(await find()).toMatchObject({ fencingToken: 0, attempts: [{ reason: 'queue_timeout' }] })
  })

  it('waits on if the worker releases it after an earlier start', async () => {
    const { find, indexed } = await releasedLate(1)
    expect([await indexed(), await find()]).toMatchObject([0, { status: 'waiting', fencingToken: 1 }])
  })
})

describe('fetching that fails', () => {
  it('is restarted after a delay, and the restart is reported', async () => {
    // `mainLoop` is protected in BullMQ's types; the fault can't be injected from outside.
    const loop = vi.spyOn(Worker.prototype as unknown as { mainLoop(): Promise<void> }, 'mainLoop')
    loop.mockRejectedValueOnce(new Error('fetching is broken'))
    const { enqueue, startPool, settled, events, drain } = await setup()
    const id = await enqueue(short, { input: { n: 6 } })
    const pool = await startPool()
    expect((await settled(id))?.output).toEqual({ n: 6 })
    expect(events).toContainEqual({ event: 'slots.restarted', queue: 'rig', slots: 4, afterMs: 500 })
    await eventually(() => pool.slots().every(({ state }) => state === 'IDLE'))
    expect(await drain()).toMatchObject([{ queue: 'rig', abandoned: [] }])
  })
})

describe('a commit that Redis does not confirm', () => {
  it('by the end of the drain is reported as unconfirmed, and neither as an end nor as a refusal', async () => {
    const redis = await privateRedis()
    await redis.start()
    const result = Promise.withResolvers<{ n: number }>()
    const started = Promise.withResolvers<void>()
    const { enqueue, startPool, events } = await setup({
      redisUrl: redis.url,
      handle: () => {
        started.resolve()
        return result.promise
      },
    })
    const id = await enqueue(short)
    const pool = await startPool()
    await started.promise
    await redis.crash()
    const drained = pool.drain({ drainMs: 300, graceMs: 100 })
    result.resolve({ n: 1 })
    expect(await drained).toMatchObject({ finished: 0, abandoned: [], unconfirmed: [{ id, task: 'rig.short' }] })
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
    expect(events.filter(({ event }) => event.startsWith('attempt.'))).toMatchObject([{ event: 'attempt.started' }])
    await redis.start()
  })
})

describe('the lifecycle of a consumer', () => {
  async function idleConsumer(more: Partial<ConsumerOptions> = {}) {
    const { redisUrl, namespace } = await setup()
    return bareConsumer({ redisUrl, namespace, ...more })
  }

  it.each([
    ['Redis is unreachable', { redisUrl: 'redis://127.0.0.1:1' }],
    ['the time of Redis is not known', { clock: { now: Date.now, measured: new Promise<void>(() => {}) } }],
  ])('ends its opening when it is closed while %s', async (_, more) => {
    const consumer = await idleConsumer(more)
    const opened = consumer.open()
    consumer.close()
    expect(await opened).toBeUndefined()
  })

  it('allows no opening after a stop, and says what it did', async () => {
    const consumer = await idleConsumer()
    await consumer.open()
    await consumer.stop()
    await expect(consumer.open()).rejects.toMatchObject({
      code: 'illegal_transition',
      message: expect.stringMatching(/^the consumer of queue 'rig' .*stopping/),
    })
  })

  it('ends a run that begins after a stop at once', async () => {
    const consumer = await idleConsumer()
    await consumer.open()
    await consumer.stop()
    expect(await consumer.run()).toBeUndefined()
  })

  it('is idempotent in closing, and can be closed before it was opened', async () => {
    const consumer = await idleConsumer()
    consumer.close()
    consumer.close()
    await consumer.stop()
    expect(consumer.notReady()).toBe('Redis is not connected')
  })
})
