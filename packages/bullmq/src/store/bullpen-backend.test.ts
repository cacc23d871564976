// Tests what a Worker, Queue or FlowProducer does with and without Bullpen's backend, and which of them get it.
import { eventually } from '@bullpen/testkit'
import {
  createRedisBackend,
  FlowProducer,
  getDefaultBackendFactory,
  type Job,
  Queue,
  RedisQueueBackend,
  setDefaultBackendFactory,
  Worker,
} from 'bullmq'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { ownWorker } from '../plain-processor.fixture.ts'
import { isBullpenBackend } from './backend.ts'
import { bullpenBackend } from './bullpen-backend.ts'

/** The members of a queue's sets and its totals, which BullMQ's own scripts do not maintain. */
async function indexOf(queue: Queue, namespace: string) {
  const redis = await queue.getBackend().client
  const keys = queueKeys(namespace, queue.name)
  const members = (key: string) => redis.zrange(key, 0, -1)
  return {
    scheduled: await members(keys.scheduled),
    retrying: await members(keys.retrying),
    dead: await members(keys.dead),
    accepted: Number((await redis.hgetall(keys.totals))['accepted'] ?? 0),
  }
}

describe('a Worker with BullMQ’s own backend and Bullpen’s processor', () => {
  it('returns every job that it fetched uncounted, runs none, pauses, and reports one error', async () => {
    const handled: unknown[] = []
    const { openQueue, startWorker, events } = ownWorker(({ input, id, attempt, fencingToken }) => {
      handled.push([id, attempt, fencingToken])
      return input
    })
    const queue = openQueue()
    const ids = (await queue.addBulk(Array.from({ length: 6 }, (_, n) => ({ name: 'own.slow', data: { n } })))).map(
      ({ id }) => id,
    )
    const fetched: unknown[] = []
    const { worker, errors } = startWorker({ concurrency: 3, backend: createRedisBackend })
    worker.on('active', ({ id }: Job) => fetched.push(id))
    // The Worker has ended its loop: it fetches nothing more.
    await eventually(() => worker.isPaused() && !worker.isRunning())
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'invalid_configuration',
        message: expect.stringMatching(/'own'.* without Bullpen's backend;.*bullpenBackend\(\{ catalogue \}\)/),
      }),
    ])
    expect(fetched.length).toBeLessThanOrEqual(3)
    expect([handled, events]).toEqual([[], []])
    expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({ waiting: 6, active: 0, failed: 0 })
    for (const id of ids) {
      expect(await queue.getJob(id ?? '')).toMatchObject({ attemptsMade: 0, attemptsStarted: 0 })
    }

    const { settled } = startWorker()
    for (const _ of ids) expect((await settled()).event).toBe('completed')
    expect(handled).toHaveLength(6)
    expect(handled).toContainEqual([ids[0], 1, 1])
  })

  it('reports the error once more if it is resumed, and still runs nothing', async () => {
    const { openQueue, startWorker, events } = ownWorker(({ input }) => input)
    const queue = openQueue()
    await queue.add('own.slow', {})
    const { worker, errors } = startWorker({ backend: createRedisBackend })
    const isIdle = () => worker.isPaused() && !worker.isRunning()
    await eventually(isIdle)
    await worker.resume()
    await eventually(() => errors.length === 2 && isIdle())
    expect(events).toEqual([])
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 })
  })
})

describe('a processor whose job comes from a backend other than Redis', () => {
  it('runs the job, because Bullpen has no scripts for it', async () => {
    const { run } = ownWorker(({ input }) => ({ n: input.n + 1 }))
    const job = {
      id: '1',
      name: 'own.brief',
      data: { n: 1 },
      opts: {},
      timestamp: Date.now(),
      attemptsStarted: 1,
      attemptsMade: 0,
      queueName: 'own',
      queueQualifiedName: 'own',
      backend: {},
    }
    // BullMQ's Job is a class with private members. This object has the fields that a processor reads.
    expect(await run(job as unknown as Job, 'token')).toEqual({ n: 2 })
  })
})

describe('a Queue with Bullpen’s backend', () => {
  it('counts its jobs, and follows them between the sets, unlike one with BullMQ’s own', async () => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const plain = openQueue()
    await plain.add('own.slow', {}, { delay: 60_000 })
    expect(await indexOf(plain, namespace)).toEqual({ scheduled: [], retrying: [], dead: [], accepted: 0 })
    const queue = openQueue('own', bullpenBackend())
    const { id } = await queue.add('own.slow', {}, { delay: 60_000 })
    await queue.addBulk([1, 2].map((n) => ({ name: 'own.slow', data: { n } })))
    expect(await indexOf(queue, namespace)).toEqual({ scheduled: [id], retrying: [], dead: [], accepted: 3 })
    await (await queue.getJob(id ?? ''))?.promote()
    expect(await indexOf(queue, namespace)).toEqual({ scheduled: [], retrying: [], dead: [], accepted: 3 })
  })

  it('has a backend of BullMQ’s class, by which it reads many jobs at once', () => {
    const { openQueue } = ownWorker(({ input }) => input)
    expect(openQueue('own', bullpenBackend()).getBackend()).toBeInstanceOf(RedisQueueBackend)
  })
})

describe('a job whose id is the name of one of the queue’s keys', () => {
  it.each(['totals', 'dead', 'settings', 'meta', 'lane', 'need-waiters'])('is refused: %s', async (jobId) => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const queue = openQueue('own', bullpenBackend())
    await queue.add('own.slow', {}, { delay: 60_000 })
    const refusal = `the job id '${jobId}' is the name of one of the queue's keys; use another id`
    await expect(queue.add('own.slow', {}, { jobId })).rejects.toThrow(refusal)
    await expect(queue.add('own.slow', {}, { jobId, delay: 60_000 })).rejects.toThrow(refusal)
    await expect(queue.addBulk([{ name: 'own.slow', data: {}, opts: { jobId } }])).rejects.toThrow(refusal)
    expect((await queue.add('own.slow', {}, { jobId: `${jobId}-1` })).id).toBe(`${jobId}-1`)
    expect(await indexOf(queue, namespace)).toMatchObject({ accepted: 2 })
  })
})

describe('a FlowProducer with Bullpen’s backend', () => {
  it('counts parents and children, each in its own queue, and returns jobs that stay counted', async () => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const queues = [openQueue('own'), openQueue('other')] as const
    const { connection } = queues[0].opts
    const flows = new FlowProducer({ connection }, bullpenBackend())
    onTestFinished(() => flows.close())
    const node = (queueName: string) => ({
      name: 'own.slow',
      queueName,
      prefix: prefixOf(namespace, queueName),
      data: {},
    })
    const { children = [] } = await flows.add({
      ...node('own'),
      children: [
        node('own'),
        { ...node('other'), opts: { delay: 60_000 } },
        { ...node('other'), opts: { priority: 3 } },
      ],
    })
    const delayed = children[1]?.job
    expect(await indexOf(queues[0], namespace)).toMatchObject({ scheduled: [], accepted: 2 })
    expect(await indexOf(queues[1], namespace)).toMatchObject({ scheduled: [delayed?.id], accepted: 2 })
    await delayed?.promote()
    expect(await indexOf(queues[1], namespace)).toMatchObject({ scheduled: [], accepted: 2 })
  })
})

describe('a factory with a fallback', () => {
  const PREFIXES = [
    ['{bullpen.own}', true],
    [undefined, false],
    ['bull', false],
    ['{bull}', false],
    ['{bullpen.other}', false],
    ['{a:b.own}', false],
  ] as const

  /** Creates a Queue, a Worker and a FlowProducer, and returns which of them have Bullpen's backend. */
  function created(prefix: string | undefined): boolean[] {
    const { connection } = ownWorker(({ input }) => input).openQueue().opts
    const options = { connection, ...(prefix !== undefined && { prefix }) }
    const worker = new Worker('own', null, { ...options, autorun: false })
    const all = [new Queue('own', options), worker, new FlowProducer(options)]
    onTestFinished(async () => {
      await Promise.all(all.map((each) => each.close()))
    })
    return all.map((each) => isBullpenBackend(each.getBackend()))
  }

  it.each(PREFIXES)('as the default, makes the backends of objects with the prefix %s: %s', (prefix, isBullpens) => {
    const before = getDefaultBackendFactory()
    onTestFinished(() => setDefaultBackendFactory(before))
    setDefaultBackendFactory(bullpenBackend({ fallback: createRedisBackend }))
    // A FlowProducer is for many queues, so any of their prefixes is Bullpen's.
    expect(created(prefix)).toEqual([isBullpens, isBullpens, isBullpens || prefix === '{bullpen.other}'])
  })

  it('makes all backends if it has no fallback', () => {
    const { openQueue } = ownWorker(({ input }) => input)
    const { connection } = openQueue().opts
    const queue = new Queue('own', { connection }, bullpenBackend())
    onTestFinished(() => queue.close())
    expect(isBullpenBackend(queue.getBackend())).toBe(true)
  })
})
