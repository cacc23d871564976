// Tests the feed: what is refused, and fetching that fails.
import type { FetchedTask, RunTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openConsumer } from './consumer.ts'
import { rig, short, silent } from './setup.fixture.ts'

afterEach(() => vi.restoreAllMocks())

describe('a task that is refused', () => {
  it('goes back as if it had not been taken: its next start is still its first', async () => {
    const { enqueue, redisUrl, namespace, broker } = await rig()
    const id = await enqueue(short)
    const offered: FetchedTask[] = []
    const work: RunTask = async (task, obey, refuse) => {
      offered.push(task)
      if (offered.length === 1) return refuse()
      const end = {
        fencingToken: task.fencingToken,
        attempt: task.attempt,
        counted: true,
        state: 'DONE_SUCCESS' as const,
        worker: 'p',
        startedAt: 1,
        endedAt: 2,
      }
      return obey({ record: end, verdict: { kind: 'completed', output: { n: 1 } }, error: undefined })
    }
    const options = { queue: 'rig', namespace, redisUrl, concurrency: 1, completedRetentionMs: 60_000, log: silent }
    const feed = openConsumer(options, work, { lockLost: () => {}, cancel: () => 'not_found', tasks: () => [] })
    onTestFinished(() => feed.close())
    await feed.open()
    const running = feed.run()
    await eventually(async () => (await broker.find(id))?.status === 'completed')
    expect(offered.map(({ fencingToken, attempt, readyAt }) => [fencingToken, attempt, readyAt !== undefined])).toEqual(
      [
        [1, 1, true],
        [1, 1, true],
      ],
    )
    expect(await broker.find(id)).toMatchObject({ fencingToken: 1, attemptsMade: 1 })
    await feed.stop()
    await running
  })
})

describe('fetching that fails', () => {
  it('begins again after a while, and its workers are told of as restarted', async () => {
    // Protected in BullMQ's types: a fault is put where nothing from outside reaches.
    const loop = vi.spyOn(Worker.prototype as unknown as { mainLoop(): Promise<void> }, 'mainLoop')
    loop.mockRejectedValueOnce(new Error('fetching is broken'))
    const { enqueue, startPool, settled, events, drain } = await rig()
    const id = await enqueue(short, { input: { n: 6 } })
    const pool = await startPool()
    expect((await settled(id))?.output).toEqual({ n: 6 })
    expect(events).toContainEqual({ event: 'slots.restarted', queue: 'rig', slots: 4, afterMs: 500 })
    await eventually(() => pool.slots().every(({ state }) => state === 'IDLE'))
    expect(await drain()).toMatchObject([{ queue: 'rig', abandoned: [] }])
  })
})

describe('an end that can not be written down', () => {
  it('since Redis is away at the end of the drain, is named', async () => {
    const redis = await privateRedis()
    await redis.start()
    const over = Promise.withResolvers<{ n: number }>()
    const entered = Promise.withResolvers<void>()
    const { enqueue, startPool } = await rig({
      redisUrl: redis.url,
      handle: () => {
        entered.resolve()
        return over.promise
      },
    })
    const id = await enqueue(short)
    const pool = await startPool()
    await entered.promise
    await redis.crash()
    const drained = pool.drain({ drainMs: 300, graceMs: 100 })
    over.resolve({ n: 1 })
    expect(await drained).toMatchObject({ finished: 1, abandoned: [], unconfirmed: [{ id, task: 'rig.short' }] })
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
    await redis.start()
  })
})
