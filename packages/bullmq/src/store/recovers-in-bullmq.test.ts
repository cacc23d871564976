// What a team's own Worker sees of lost jobs and of locks is what it sees in BullMQ itself.
import { randomUUID } from 'node:crypto'
import { createRedisBackend, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { backendOf } from '../internals/pins/plain.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { lockLeftMs, lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

function stage(isBullpens: boolean, more: Partial<WorkerOptions> = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const queue = new Queue('q', options)
  const workerOptions = { ...options, autorun: false, maxStalledCount: 1, ...more }
  const worker = new Worker('q', async () => {}, workerOptions, isBullpens ? bullpenBackend() : createRedisBackend)
  onTestFinished(async () => {
    await Promise.all([queue.close(), worker.close(true)])
    redis.disconnect()
  })
  const backend = backendOf(worker)
  const mark = isBullpens ? keys.attachedCheck : keys.stalledCheck
  const marked = isBullpens ? keys.unrenewed : keys.stalled
  return {
    ...{ namespace, redis, keys, queue, options, backend, mark, marked },
    lock: (id: string, token = 'token'): Promise<unknown> =>
      isBullpens ? lockTask(redis, keys, id, token, 60_000) : redis.set(keys.lock(id), token, 'PX', 60_000),
    /** Adds a job, and makes it active as a worker does that dies at once. */
    async lose(jobId: string, jobOptions: JobsOptions = {}): Promise<void> {
      await queue.add('x', {}, { jobId, ...jobOptions })
      expect((await worker.getNextJob('lost', { block: false }))?.id).toBe(jobId)
      await unlockTasks(redis, keys, jobId)
    },
    /** Checks without waiting for the interval since the last check. */
    async check(): Promise<string[]> {
      await redis.del(mark)
      return (await backend.moveStalledJobsToWait()).toSorted()
    },
  }
}

type Stage = ReturnType<typeof stage>

/** The fields that Bullpen stores beyond BullMQ. */
const OWN_FIELDS = ['deaths', 'diedIn', 'lostIn', 'stacktrace']

/** Expects that BullMQ and Bullpen reply and store the same, and returns it. */
async function expectSame(act: (one: Stage) => Promise<unknown>, more: Partial<WorkerOptions> = {}) {
  const results = []
  for (const isBullpens of [false, true]) {
    const one = stage(isBullpens, more)
    const reply = await act(one)
    const ignores = (key: string): boolean => key === one.keys.totals || key === one.mark
    results.push({ reply, left: await stateOf(one, { ignores, ignoredFields: OWN_FIELDS }) })
  }
  expect(results[1]).toEqual(results[0])
  return results[1] ?? expect.fail()
}

const SCENARIOS: Readonly<Record<string, (one: Stage) => Promise<unknown>>> = {
  alone: ({ lose }) => lose('lost'),
  'with others behind it': async ({ lose, queue }) => {
    await lose('lost')
    for (const jobId of ['b', 'c']) await queue.add('x', {}, { jobId })
  },
  'with a priority, with others behind it': async ({ lose, queue }) => {
    await lose('lost', { priority: 5 })
    await queue.add('x', {}, { jobId: 'b', priority: 1 })
    await queue.add('x', {}, { jobId: 'c' })
  },
  'in a paused queue': async ({ lose, queue }) => {
    await lose('lost')
    await queue.pause()
  },
  'in a queue at its concurrency': async ({ lose, redis, keys, queue, lock }) => {
    await lose('lost')
    await redis.lpush(keys.active, 'other')
    await redis.hset(keys.job('other'), { name: 'x' })
    await lock('other')
    await queue.setGlobalConcurrency(1)
  },
  'once too often': async ({ lose, redis, keys }) => {
    await lose('lost')
    await redis.hset(keys.job('lost'), 'stc', 1)
  },
  'too often, although a job scheduler repeats it': async ({ lose, redis, keys }) => {
    await lose('lost')
    await redis.hset(keys.job('lost'), { stc: 5, rjk: 'daily' })
    await redis.hset(keys.scheduler('daily'), 'name', 'x')
  },
  'too often, although an old job scheduler repeats it': async ({ lose, redis, keys }) => {
    await lose('lost')
    await redis.hset(keys.job('lost'), { stc: 5, rjk: 'daily' })
    await redis.zadd(keys.repeat, 1, 'daily')
  },
  'too often, after its job scheduler was deleted': async ({ lose, redis, keys }) => {
    await lose('lost')
    await redis.hset(keys.job('lost'), { stc: 5, rjk: 'daily' })
  },
  'while another one is locked': async ({ lose, lock }) => {
    await lose('locked')
    await lock('locked')
    await lose('lost')
  },
  'with a mark of a job that is not active': async ({ lose, redis, marked }) => {
    await lose('lost')
    await redis.sadd(marked, 'gone')
  },
}

describe('a job that is lost', () => {
  it.each(Object.entries(SCENARIOS))('%s returns to its queue as in BullMQ', async (_name, prepare) => {
    const { reply } = await expectSame(async (one) => {
      await prepare(one)
      await one.redis.del(one.keys.marker)
      return [await one.check(), await one.check()]
    })
    expect(reply).toEqual([[], ['lost']])
  })

  it('is looked for once in an interval, however many Workers look', async () => {
    const { reply } = await expectSame(
      async ({ lose, backend, redis, mark, marked }) => {
        await lose('lost')
        const replies = [await backend.moveStalledJobsToWait(), await backend.moveStalledJobsToWait()]
        return [replies, await redis.smembers(marked), (await redis.pttl(mark)) > 50_000]
      },
      { stalledInterval: 60_000 },
    )
    expect(reply).toEqual([[[], []], ['lost'], true])
  })

  it('is found among more jobs than one script looks at, each of which is reported once', async () => {
    const { check, redis, keys } = stage(true)
    const ids = Array.from({ length: 1_200 }, (_, i) => `job-${i}`)
    const filling = redis.pipeline().rpush(keys.active, ...ids)
    for (const id of ids) filling.hset(keys.job(id), 'name', 'x', 'ats', 1)
    await filling.exec()
    expect(await check()).toEqual([])
    expect(await check()).toEqual(ids.toSorted())
  })
})

describe('a lock', () => {
  it('is renewed if the Worker holds it, and not otherwise, alone or together, as in BullMQ', async () => {
    const { reply } = await expectSame(async ({ lose, backend, redis, keys, lock, marked }) => {
      for (const id of ['mine', 'theirs', 'free']) await lose(id)
      await lock('mine')
      await lock('theirs', 'other')
      await redis.sadd(marked, 'mine', 'theirs', 'free')
      const ids = ['mine', 'theirs', 'free', 'unknown']
      const alone = await Promise.all(ids.map((id) => backend.extendLock(id, 'token', 60_000)))
      const stillMarked = (await redis.smembers(marked)).toSorted()
      await redis.sadd(marked, 'mine')
      const tokens = ids.map(() => 'token')
      const together = await backend.extendLocks(ids, tokens, 90_000)
      return { alone, marked: stillMarked, together, lasts: (await lockLeftMs(redis, keys, 'mine')) > 60_000 }
    })
    expect(reply).toEqual({
      alone: [1, 0, 0, 0],
      marked: ['free', 'theirs'],
      together: ['theirs', 'free', 'unknown'],
      lasts: true,
    })
  })

  it("keeps its job from the check of a Worker without Bullpen's backend if it is renewed between two of them", async () => {
    const { backend, options, redis, keys, lock } = stage(true)
    const plain = new Worker('q', async () => {}, { ...options, autorun: false })
    onTestFinished(() => plain.close(true))
    for (const id of ['renewed', 'left']) {
      await redis.rpush(keys.active, id)
      await redis.hset(keys.job(id), { name: 'x', ats: 1 })
      await lock(id)
    }
    const check = async () => {
      await redis.del(keys.stalledCheck)
      return backendOf(plain).moveStalledJobsToWait()
    }
    expect(await check()).toEqual([])
    await backend.extendLocks(['renewed'], ['token'], 60_000)
    expect(await check()).toEqual(['left'])
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['renewed'])
  })

  it('is renewed with as many others as a Worker has', async () => {
    const { backend, redis, keys, lock } = stage(true)
    const ids = Array.from({ length: 600 }, (_, i) => `job-${i}`)
    await Promise.all(ids.slice(1).map((id) => lock(id)))
    const tokens = ids.map(() => 'token')
    expect(await backend.extendLocks(ids, tokens, 60_000)).toEqual(['job-0'])
    expect(await lockLeftMs(redis, keys, 'job-599')).toBeGreaterThan(0)
    expect(await backend.extendLocks([], [], 60_000)).toEqual([])
  })
})
