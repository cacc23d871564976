// Tests what a Worker, Queue or FlowProducer does with and without attach().
import { eventually } from '@bullpen/testkit'
import { FlowProducer, type Job, type Queue } from 'bullmq'
import { describe, expect, it, onTestFinished } from 'vitest'
import { attach } from './attach.ts'
import { prefixOf, queueKeys } from './keys.ts'
import { ownWorker } from './plain-processor.fixture.ts'

/** The members of a queue's sets and its totals, which unwrapped scripts of BullMQ do not maintain. */
async function indexOf(queue: Queue, namespace: string) {
  const redis = await (await queue.getBackend()).client
  const keys = queueKeys(namespace, queue.name)
  const members = (key: string) => redis.zrange(key, 0, -1)
  return {
    scheduled: await members(keys.scheduled),
    retrying: await members(keys.retrying),
    dead: await members(keys.dead),
    accepted: Number((await redis.hgetall(keys.totals))['accepted'] ?? 0),
  }
}

describe('a Worker that was not attached', () => {
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
    const { worker, errors, settled } = startWorker({ concurrency: 3, attached: false })
    worker.on('active', ({ id }: Job) => fetched.push(id))
    // The Worker has ended its loop: it fetches nothing more.
    await eventually(() => worker.isPaused() && !worker.isRunning())
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'invalid_configuration',
        message: expect.stringMatching(/'own'.*call attach\(worker\)/),
      }),
    ])
    expect(fetched.length).toBeLessThanOrEqual(3)
    expect([handled, events]).toEqual([[], []])
    expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({ waiting: 6, active: 0, failed: 0 })
    for (const id of ids) {
      expect(await queue.getJob(id ?? '')).toMatchObject({ attemptsMade: 0, attemptsStarted: 0 })
    }

    attach(worker)
    await worker.resume()
    for (const _ of ids) expect((await settled()).event).toBe('completed')
    expect(handled).toHaveLength(6)
    expect(handled).toContainEqual([ids[0], 1, 1])
    expect(errors).toHaveLength(1)
  })

  it('reports the error once more if it is resumed without attach, and still runs nothing', async () => {
    const { openQueue, startWorker, events } = ownWorker(({ input }) => input)
    const queue = openQueue()
    await queue.add('own.slow', {})
    const { worker, errors } = startWorker({ attached: false })
    const isIdle = () => worker.isPaused() && !worker.isRunning()
    await eventually(isIdle)
    await worker.resume()
    await eventually(() => errors.length === 2 && isIdle())
    expect(events).toEqual([])
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 })
  })
})

describe('a processor whose job comes from a backend other than Redis', () => {
  it('runs the job, because there is nothing to attach', async () => {
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

describe('a Queue that was attached', () => {
  it('counts its jobs, and follows them between the sets, unlike one that was not', async () => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const plain = openQueue()
    await plain.add('own.slow', {}, { delay: 60_000 })
    expect(await indexOf(plain, namespace)).toEqual({ scheduled: [], retrying: [], dead: [], accepted: 0 })
    const queue = attach(openQueue())
    const { id } = await queue.add('own.slow', {}, { delay: 60_000 })
    await queue.addBulk([1, 2].map((n) => ({ name: 'own.slow', data: { n } })))
    expect(await indexOf(queue, namespace)).toEqual({ scheduled: [id], retrying: [], dead: [], accepted: 3 })
    await (await queue.getJob(id ?? ''))?.promote()
    expect(await indexOf(queue, namespace)).toEqual({ scheduled: [], retrying: [], dead: [], accepted: 3 })
  })
})

describe('a job whose id is the name of one of the queue’s keys', () => {
  it.each(['totals', 'dead', 'settings', 'meta', 'lane', 'need-waiters'])('is refused: %s', async (jobId) => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const queue = attach(openQueue())
    await queue.add('own.slow', {}, { delay: 60_000 })
    const refusal = `the job id '${jobId}' is the name of one of the queue's keys; use another id`
    await expect(queue.add('own.slow', {}, { jobId })).rejects.toThrow(refusal)
    await expect(queue.add('own.slow', {}, { jobId, delay: 60_000 })).rejects.toThrow(refusal)
    await expect(queue.addBulk([{ name: 'own.slow', data: {}, opts: { jobId } }])).rejects.toThrow(refusal)
    expect((await queue.add('own.slow', {}, { jobId: `${jobId}-1` })).id).toBe(`${jobId}-1`)
    expect(await indexOf(queue, namespace)).toMatchObject({ accepted: 2 })
  })
})

describe('a FlowProducer that was attached', () => {
  it('counts parents and children, each in its own queue', async () => {
    const { openQueue, namespace } = ownWorker(({ input }) => input)
    const queues = [openQueue('own'), openQueue('other')] as const
    const { connection } = queues[0].opts
    const flows = attach(new FlowProducer({ connection }))
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
    const delayed = children[1]?.job.id
    expect(await indexOf(queues[0], namespace)).toMatchObject({ scheduled: [], accepted: 2 })
    expect(await indexOf(queues[1], namespace)).toMatchObject({ scheduled: [delayed], accepted: 2 })
  })
})
