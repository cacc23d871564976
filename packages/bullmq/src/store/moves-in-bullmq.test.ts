// What our script for ends and starts leaves in Redis is what BullMQ's own scripts leave, whatever features of BullMQ a team uses.
import { randomUUID } from 'node:crypto'
import { createRedisBackend, FlowProducer, type Job, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

type Options = Omit<WorkerOptions, 'connection'>

/** A queue that BullMQ alone adds jobs to, and a Worker with or without Bullpen's scripts. */
function stage(isBullpens: boolean, given: Options) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const queue = new Queue('q', options)
  const flows = new FlowProducer(options)
  const common = { autorun: false, skipLockRenewal: true, skipStalledCheck: true, name: 'w' }
  const backend = isBullpens ? bullpenBackend() : createRedisBackend
  const worker = new Worker('q', async () => {}, { ...options, ...common, ...given }, backend)
  onTestFinished(async () => {
    await Promise.all([worker.close(), queue.close(), flows.close()])
    redis.disconnect()
  })
  const add = (jobId: string, opts: JobsOptions = {}) => queue.add('x', {}, { jobId, ...opts })
  const fetch = async (): Promise<Job> => (await worker.getNextJob('token', { block: false })) ?? expect.fail()
  return {
    ...{ namespace, redis, keys, queue, flows, worker, add, fetch },
    lock: (id: string, token: string): Promise<unknown> =>
      isBullpens ? lockTask(redis, keys, id, token) : redis.set(keys.lock(id), token, 'PX', 60_000),
    async fetchNone(): Promise<void> {
      expect(await worker.getNextJob('token', { block: false })).toBeUndefined()
    },
    async start(jobId: string, opts: JobsOptions = {}): Promise<Job> {
      await add(jobId, opts)
      return fetch()
    },
    fail: (job: Job, fetches = false) =>
      job.moveToFailed(Object.assign(new Error('no'), { stack: 's' }), 'token', fetches),
  }
}

type Stage = ReturnType<typeof stage>

/** Everything that Redis holds, except for what only Bullpen stores. */
function left(one: Stage): Promise<Record<string, unknown>> {
  const { keys } = one
  const own = [keys.totals, keys.scheduled, keys.retrying, keys.dead, `${keys.base}recently-removed`]
  const ignores = (key: string): boolean => own.includes(key) || key.includes('fingerprint')
  return stateOf(one, { ignores, ignoredFields: ['fingerprint'] })
}

interface Scenario {
  readonly options?: Options
  /** Returns what is compared besides what Redis holds. */
  readonly run: (stage: Stage) => Promise<unknown>
}

/** The id of the job that the end of another one has fetched. */
const fetched = (next: unknown): unknown => (Array.isArray(next) ? next[1] || undefined : next)
const refusedWith = (move: Promise<unknown>): Promise<unknown> =>
  move.then(fetched, ({ code, message }) => [code, message])

const ENDS: Readonly<Record<string, Scenario>> = {
  'a job that is completed': { run: async ({ start }) => (await start('a')).moveToCompleted({ n: 1 }, 'token', false) },
  'a job that is completed without a result': {
    run: async ({ start }) => (await start('a')).moveToCompleted(undefined, 'token', false),
  },
  'a completed and a failed job of a queue that keeps no events, whose readers get those of each end': {
    async run({ start, fail, redis, keys }) {
      const job = await start('a')
      await redis.hset(keys.meta, 'opts.maxLenEvents', 0)
      const lasts = async () => (await redis.xrange(keys.events, '-', '+')).map(([, [, name]]) => name)
      await job.moveToCompleted(1, 'token', false)
      const ofFirst = await lasts()
      await fail(await start('b'))
      return [ofFirst, await lasts()]
    },
  },
  'a completed job, whose end fetches the next one': {
    async run({ start, add }) {
      const job = await start('a')
      await add('b')
      return fetched(await job.moveToCompleted(1, 'token'))
    },
  },
  'a completed job, whose end finds that nothing waits': {
    run: async ({ start }) => fetched(await (await start('a')).moveToCompleted(1, 'token')),
  },
  'a completed job, whose end finds a job that is not due': {
    async run({ start, add }) {
      const job = await start('a')
      await add('b', { delay: 60_000 })
      return fetched(await job.moveToCompleted(1, 'token'))
    },
  },
  'a job without attempts left': { run: async ({ start, fail }) => fail(await start('a', { attempts: 1 })) },
  'a failed job, whose end fetches one with a priority': {
    async run({ start, add, fail }) {
      const job = await start('a')
      await add('b', { priority: 3 })
      return fetched(await fail(job, true))
    },
  },
  'a job that is deferred to fail': {
    async run({ start, redis, keys, fail }) {
      const job = await start('a')
      await redis.hset(keys.job('a'), 'defa', 'a child failed')
      await fail(job)
    },
  },
}

const RETURNS: Readonly<Record<string, Scenario>> = {
  'a job that is retried later': {
    run: async ({ start, fail }) => fail(await start('a', { attempts: 3, backoff: 60_000 })),
  },
  'a job that is retried later, whose end fetches the next one': {
    async run({ start, add, fail }) {
      const job = await start('a', { attempts: 3, backoff: 60_000 })
      await add('b')
      return fetched(await fail(job, true))
    },
  },
  'a job that is retried later, whose end finds that nothing waits': {
    run: async ({ start, fail }) => fail(await start('a', { attempts: 3, backoff: 60_000 }), true),
  },
  'a job that is retried at once, behind another one': {
    async run({ start, add, fail }) {
      const job = await start('a', { attempts: 3 })
      await add('b')
      await fail(job)
    },
  },
  'a lifo job that is retried at once, before another one': {
    async run({ start, add, fail }) {
      const job = await start('a', { attempts: 3, lifo: true })
      await add('b')
      await fail(job)
    },
  },
  'a job with a priority that is retried at once': {
    async run({ start, add, fail }) {
      const job = await start('a', { attempts: 3, priority: 2 })
      await add('b', { priority: 2 })
      await fail(job)
    },
  },
  'a job that is retried while another one is due': {
    async run({ start, add, fail, redis, keys }) {
      const job = await start('a', { attempts: 3 })
      await add('b', { delay: 60_000 })
      await redis.zadd(keys.delayed, 4_096, 'b')
      await fail(job)
    },
  },
  'a job that its handler delays': {
    async run({ start, worker }) {
      await start('a')
      await worker.getBackend().moveToDelayed('a', Date.now(), 60_000, 'token', { skipAttempt: true })
    },
  },
  'a job that returns to the head of the queue': {
    async run({ start, add }) {
      const job = await start('a')
      await add('b')
      await job.moveToWait('token')
    },
  },
  'a job that returns to a paused queue': {
    async run({ start, queue }) {
      const job = await start('a', { attempts: 3 })
      await queue.pause()
      await job.moveToWait('token')
    },
  },
  'a job that returns to a queue whose rate is limited': {
    async run({ start, redis, keys }) {
      const job = await start('a')
      await redis.set(`${keys.base}limiter`, 5, 'PX', 60_000)
      return Number(await job.moveToWait('token')) > 50_000
    },
  },
}

const STARTS: Readonly<Record<string, Scenario>> = {
  'an empty queue': { run: ({ fetchNone }) => fetchNone() },
  'a paused queue': {
    async run({ add, queue, fetchNone }) {
      await add('a')
      await queue.pause()
      await fetchNone()
    },
  },
  'a queue at its concurrency': {
    async run({ add, queue, fetch, fetchNone }) {
      await queue.setGlobalConcurrency(1)
      await add('a')
      await add('b')
      await fetch()
      await fetchNone()
    },
  },
  'a queue with a rate limit': {
    async run({ add, queue, fetch, fetchNone }) {
      await queue.setGlobalRateLimit(1, 60_000)
      await add('a')
      await add('b')
      await fetch()
      await fetchNone()
    },
  },
  'a Worker with a rate limit': {
    options: { limiter: { max: 1, duration: 60_000 } },
    async run({ add, fetch }) {
      await add('a')
      await add('b')
      return fetched(await (await fetch()).moveToCompleted(1, 'token'))
    },
  },
  'jobs that are due': {
    async run({ add, fetch, redis, keys }) {
      for (const [id, options] of [
        ['a', { delay: 60_000 }],
        ['b', { delay: 60_000, priority: 4 }],
        ['c', {}],
        ['d', { delay: 60_000 }],
      ] as const) {
        await add(id, options)
      }
      await redis.zadd(keys.delayed, 4_096, 'a', 8_192, 'b')
      return (await fetch()).id
    },
  },
  'jobs with a priority': {
    async run({ add, fetch }) {
      await add('a', { priority: 4 })
      await add('b', { priority: 2 })
      await add('c')
      return [(await fetch()).id, (await fetch()).id, (await fetch()).id]
    },
  },
  'a job behind an old marker': {
    async run({ add, fetch, redis, keys }) {
      await add('a')
      await redis.rpush(keys.wait, '0:1700')
      return (await fetch()).id
    },
  },
}

const many = async ({ start, fail }: Stage, ends: 'completed' | 'failed'): Promise<void> => {
  for (const id of ['a', 'b', 'c', 'd']) {
    const job = await start(id)
    await (ends === 'completed' ? job.moveToCompleted(1, 'token', false) : fail(job))
  }
}

const KEPT: Readonly<Record<string, Options>> = {
  'none are kept': { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  'two are kept': { removeOnComplete: { count: 2 }, removeOnFail: { count: 2 } },
  'all are kept for an hour': { removeOnComplete: { age: 3_600 }, removeOnFail: { age: 3_600 } },
  'they are kept for no time': { removeOnComplete: { age: 0 }, removeOnFail: { age: 0 } },
  'two are kept for an hour': { removeOnComplete: { age: 3_600, count: 2 }, removeOnFail: { age: 3_600, count: 2 } },
}

const FEATURES: Readonly<Record<string, Scenario>> = {
  ...Object.fromEntries(
    (['completed', 'failed'] as const).flatMap((ends) =>
      Object.entries(KEPT).map(([name, options]): [string, Scenario] => [
        `${ends} jobs, if ${name}`,
        { options, run: (one) => many(one, ends) },
      ]),
    ),
  ),
  'a completed job whose own option is not to be kept': {
    run: async ({ start }) => (await start('a', { removeOnComplete: true })).moveToCompleted(1, 'token', false),
  },
  'a Worker that collects metrics': {
    options: { metrics: { maxDataPoints: 5 } },
    async run(one) {
      const { redis, keys } = one
      for (const set of ['completed', 'failed']) {
        await redis.hset(`${keys.base}metrics:${set}`, { count: 3, prevTS: 600_000, prevCount: 1 })
        await redis.rpush(`${keys.base}metrics:${set}:data`, 9, 8)
      }
      await one.start('a').then((job) => job.moveToCompleted(1, 'token', false))
      await one.fail(await one.start('b'))
    },
  },
  'a child that is completed before another one, and then the other': {
    async run({ flows, fetch }) {
      const child = (jobId: string) => ({ name: 'x', queueName: 'q', opts: { jobId } })
      await flows.add({ name: 'p', queueName: 'q', opts: { jobId: 'p' }, children: [child('a'), child('b')] })
      for (let n = 0; n < 2; n++) await (await fetch()).moveToCompleted({ n }, 'token', false)
      const parent = await fetch()
      return [parent.id, await parent.getChildrenValues().then(Object.values)]
    },
  },
  'a child that fails and is not kept, whose parent waits for nothing else': {
    async run({ flows, fetch, fail }) {
      const child = { name: 'x', queueName: 'q', opts: { jobId: 'a', removeOnFail: true } }
      await flows.add({ name: 'p', queueName: 'q', opts: { jobId: 'p' }, children: [child] })
      await fail(await fetch())
    },
  },
  'a child that fails its parent': {
    async run({ flows, fetch, fail }) {
      const child = { name: 'x', queueName: 'q', opts: { jobId: 'a', failParentOnFailure: true } }
      await flows.add({ name: 'p', queueName: 'q', opts: { jobId: 'p' }, children: [child] })
      return fetched(await fail(await fetch(), true))
    },
  },
  'a parent that is to be completed before its child': {
    async run({ start, redis, keys }) {
      const job = await start('a')
      await redis.sadd(`${keys.job('a')}:dependencies`, 'child')
      return refusedWith(job.moveToCompleted(1, 'token', false))
    },
  },
  'a parent one of whose children has failed': {
    async run({ start, redis, keys }) {
      const job = await start('a')
      await redis.zadd(`${keys.job('a')}:unsuccessful`, 1, 'child')
      return refusedWith(job.moveToCompleted(1, 'token', false))
    },
  },
  'a job with a deduplication id': {
    run: async ({ start }) => (await start('a', { deduplication: { id: 'one' } })).moveToCompleted(1, 'token', false),
  },
  'a job with a deduplication id, after which the last one that was added starts': {
    async run({ start, queue }) {
      const deduplication = { id: 'one', keepLastIfActive: true }
      const job = await start('a', { deduplication })
      await queue.add('x', { n: 1 }, { jobId: 'b', deduplication })
      await queue.add('x', { n: 2 }, { jobId: 'c', deduplication, priority: 2 })
      return fetched(await job.moveToCompleted(1, 'token'))
    },
  },
}

describe.each(Object.entries({ ...ENDS, ...RETURNS, ...STARTS, ...FEATURES }))('%s', (_name, { options = {}, run }) => {
  it('leaves what BullMQ’s own scripts leave', async () => {
    const results = []
    for (const isBullpens of [false, true]) {
      const one = stage(isBullpens, options)
      results.push({ returned: await run(one), left: await left(one) })
    }
    expect(results[1]).toEqual(results[0])
  })
})

const MOVES: Readonly<Record<string, (job: Job, token: string) => Promise<unknown>>> = {
  'a completion': (job, token) => job.moveToCompleted(1, token, false),
  'a failure': (job, token) => job.moveToFailed(new Error('no'), token, false),
  'a delay': (job, token) => job.moveToDelayed(Date.now() + 60_000, token),
  'a requeue': (job, token) => job.moveToWait(token),
}

describe.each(Object.entries(MOVES))('%s', (_name, move) => {
  const REFUSED: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
    'is gone': ({ redis, keys }) => redis.del(keys.job('a')),
    'has lost its lock': ({ redis, keys }) => unlockTasks(redis, keys, 'a'),
    'belongs to another worker': ({ lock }) => lock('a', 'another'),
  }

  it.each(Object.entries(REFUSED))(
    'of a job that %s is refused as in BullMQ, and writes nothing',
    async (_why, spoil) => {
      const refusals = []
      for (const isBullpens of [false, true]) {
        const one = stage(isBullpens, {})
        const job = await one.start('a')
        await one.add('b')
        await spoil(one)
        const before = await left(one)
        refusals.push(await refusedWith(move(job, 'token')))
        expect(await left(one)).toEqual(before)
      }
      expect(refusals[1]).toEqual(refusals[0])
    },
  )

  it('of a job that is not active is refused, and writes nothing', async () => {
    const one = stage(true, {})
    const job = await one.start('a')
    await one.redis.del(one.keys.active)
    const before = await left(one)
    expect(await refusedWith(move(job, 'token'))).toEqual([-3, expect.stringContaining('active')])
    expect(await left(one)).toEqual(before)
  })
})

it('one fetch drops a bounded number of ids without a job, and a worker fetches again', async () => {
  const { add, worker, redis, keys } = stage(true, {})
  await add('a')
  await redis.rpush(keys.wait, ...Array.from({ length: 1_500 }, (_, n) => `gone${n}`))
  expect(await worker.getNextJob('token', { block: false })).toBeUndefined()
  expect([await redis.llen(keys.wait), await redis.llen(keys.active)]).toEqual([501, 0])
  expect(await redis.zrange(keys.marker, '0', '-1')).toEqual(['0'])
  expect(await worker.getNextJob('token', { block: false })).toMatchObject({ id: 'a' })
})

it.each(['wait', 'prioritized', 'delayed'] as const)(
  'an id without a job in `%s` is dropped, and the next job starts',
  async (place) => {
    const { add, fetch, fetchNone, redis, keys } = stage(true, {})
    const options = place === 'prioritized' ? { priority: 4 } : {}
    if (place === 'wait') await redis.rpush(keys.wait, 'gone', 'lost')
    else await redis.zadd(keys[place], 1, 'gone', 2, 'lost')
    await add('a', options)
    expect(await fetch()).toMatchObject({
      id: 'a',
      attemptsStarted: 1,
      processedBy: 'w',
      processedOn: expect.any(Number),
    })
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['a'])
    await fetchNone()
    expect(await redis.exists(keys.job('gone'), keys.job('lost'))).toBe(0)
    expect(JSON.stringify(await redis.xrange(keys.events, '-', '+'))).not.toContain('gone')
  },
)
