// BullMQ's backend: how Bullpen takes its place, which methods send every script, and what they are given.
import { createRedisBackend, FlowProducer, type RedisClient, type RedisQueueBackend, Worker } from 'bullmq'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { queueKeys } from '../../keys.ts'
import { IDLE_WAIT_SECONDS } from '../../store/backend.ts'
import { bullmqKeys } from '../bullmq-keys.ts'
import { backendOf, plainBullmq, QUEUE } from './plain.fixture.ts'

/** Records the scripts that a backend sends. */
function recordScripts(backend: RedisQueueBackend) {
  const sent: { readonly name: string; readonly args: unknown[] }[] = []
  const exec = backend.execCommand.bind(backend)
  backend.execCommand = (client: RedisClient, name: string, args: unknown[]) => {
    sent.push({ name, args })
    return exec(client, name, args)
  }
  return sent
}

describe('a backend', () => {
  it('is made by the factory that a Worker is given, with the name, the options and a blocking connection', async () => {
    const { options } = await plainBullmq()
    const factory = vi.fn(createRedisBackend)
    const worker = new Worker(QUEUE, async () => {}, { ...options, autorun: false, name: 'w' }, factory)
    onTestFinished(() => worker.close())
    expect(factory.mock.calls).toEqual([
      [QUEUE, expect.objectContaining({ prefix: options.prefix, name: 'w' }), { withBlockingConnection: true }],
    ])
    expect(factory.mock.contexts).toEqual([worker])
    expect(worker.getBackend()).toBe(factory.mock.results[0]?.value)
  })

  it('belongs to the jobs of its Worker, beside the Worker itself', async () => {
    const { queue, createWorker, fetch } = await plainBullmq()
    await queue.add('x', {})
    const worker = createWorker(async () => {}, { limiter: { max: 5, duration: 1_000 } })
    const job = await fetch(worker)
    // Both are protected in BullMQ's types.
    const { backend, queue: owner } = job as unknown as { backend: unknown; queue: { opts: { limiter?: object } } }
    expect(backend).toBe(worker.getBackend())
    expect(owner).toBe(worker)
    expect(owner.opts.limiter).toEqual({ max: 5, duration: 1_000 })
    expect(job.queueQualifiedName).toBe(backendOf(worker).qualifiedName)
  })

  it('uses the prefix and the key names that Bullpen uses', async () => {
    const { queue } = await plainBullmq()
    const base = backendOf(queue).qualifiedName
    const { base: prefix, job, lock, ...named } = bullmqKeys(base)
    // The keys of metrics have a colon in their names, and are not in BullMQ's list.
    const names = Object.values(named).filter((key) => typeof key === 'string' && !key.includes(':metrics:'))
    expect(Object.values(queue.keys)).toEqual(expect.arrayContaining([prefix, ...names]))
    expect(queue.toKey('id')).toBe(job('id'))
    expect(lock('id')).toBe(`${job('id')}:lock`)
    const own = Object.entries(queueKeys('n', 'q')).filter(([name]) => !(name in bullmqKeys('')))
    const theirs = new Set(Object.keys(queue.keys).map((type) => `{n.q}:q:${type}`))
    expect(own.filter(([, key]) => typeof key === 'string' && theirs.has(key))).toEqual([])
  })

  it('sends every script of a Queue and of a Worker through execCommand, which can be replaced', async () => {
    const { queue, createWorker, fetch } = await plainBullmq()
    const worker = createWorker(async () => {})
    const [byQueue, byWorker] = [recordScripts(backendOf(queue)), recordScripts(backendOf(worker))]
    await queue.add('x', {})
    await queue.add('x', {}, { delay: 60_000 })
    await queue.add('x', {}, { priority: 5 })
    expect(byQueue.map(({ name }) => name)).toEqual(['addStandardJob', 'addDelayedJob', 'addPrioritizedJob'])
    await (await fetch(worker, 'a')).moveToCompleted(1, 'a', false)
    const job = await fetch(worker, 'b')
    await job.moveToWait('b')
    expect(byWorker.map(({ name }) => name)).toEqual([
      ...['moveToActive', 'moveToFinished', 'moveToActive', 'moveJobFromActiveToWait'],
    ])
  })

  it('has a connection whose client defines commands, also for the transactions that it begins', async () => {
    const { queue } = await plainBullmq()
    const client = await backendOf(queue).connection.client
    client.defineCommand('bullpen:test', { numberOfKeys: 1, lua: `return KEYS[1] .. ARGV[1]` })
    expect(await client.runCommand('bullpen:test', ['a', 'b'])).toBe('ab')
    const transaction = client.multi()
    void transaction.runCommand('bullpen:test', ['c', 'd'])
    expect(await transaction.exec()).toEqual([[null, 'cd']])
    expect(await backendOf(queue).client).toBe(client)
  })

  it('waits for the marker with the lowest score, which is the due time of the next delayed job', async () => {
    const { queue, createWorker } = await plainBullmq()
    const before = Date.now()
    await queue.add('x', {}, { delay: 60_000 })
    const backend = backendOf(createWorker(async () => {}))
    const marker = await backend.waitForJob(1)
    expect(marker?.member).toBe('1')
    expect(marker?.score).toBeGreaterThanOrEqual(before + 60_000)
    expect(marker?.score).toBeLessThanOrEqual(Date.now() + 60_000)
    await queue.add('x', {})
    expect(await backend.waitForJob(1)).toEqual({ member: '0', score: 0 })
  })

  it('waits for a marker for at most ten seconds', async () => {
    const { queue } = await plainBullmq()
    expect(backendOf(queue).maximumBlockTimeout).toBe(IDLE_WAIT_SECONDS)
  })

  it('answers a fetch with the job, its id, the delay of a rate limit and the due time of the next delayed job', async () => {
    const { queue, createWorker } = await plainBullmq()
    const backend = backendOf(createWorker(async () => {}, { name: 'w', lockDuration: 5_000 }))
    const { id = '' } = await queue.add('x', {})
    expect(await backend.moveToActive('token', 'w')).toEqual([
      expect.objectContaining({ id: undefined, name: 'x' }),
      id,
      0,
      0,
    ])
    const before = Date.now()
    await queue.add('x', {}, { delay: 60_000 })
    const [none, zero, limited, due] = await backend.moveToActive('token', 'w')
    expect([none, zero, limited]).toEqual([null, 0, 0])
    expect(due).toBeGreaterThanOrEqual(before + 60_000)
  })

  it('has siblings for other queues, of the same class, on the same connection', async () => {
    const { queue } = await plainBullmq()
    const backend = backendOf(queue)
    // Its type is that of any backend.
    const sibling = backend.forQueue('another') as RedisQueueBackend
    expect(sibling.connection).toBe(backend.connection)
    expect(sibling.constructor).toBe(backend.constructor)
    expect(sibling.toKey('')).toBe(`${queue.opts.prefix}:another:`)
  })

  it('of a FlowProducer gets a whole flow at once, each job with the prefix and the name of its queue', async () => {
    const { options, keys } = await plainBullmq()
    const producer = new FlowProducer(options)
    onTestFinished(() => producer.close())
    const addFlow = vi.spyOn(producer.getBackend(), 'addFlow').mockResolvedValue([])
    const child = { name: 'child', queueName: 'another', data: {}, opts: { jobId: 'c' } }
    await producer.add({ name: 'parent', queueName: QUEUE, data: {}, opts: { jobId: 'p' }, children: [child] })
    const { prefix } = options
    const parentKey = keys.job('p')
    const jobData = (name: string): unknown =>
      expect.objectContaining({ name, data: '{}', timestamp: expect.any(Number) })
    expect(addFlow.mock.calls[0]?.[0]).toEqual([
      {
        jobData: jobData('parent'),
        jobId: 'p',
        parentKeyOpts: { addToWaitingChildren: true },
        prefix,
        queueName: QUEUE,
      },
      {
        ...{ jobData: jobData('child'), jobId: 'c', prefix, queueName: 'another' },
        parentKeyOpts: { parentKey, parentDependenciesKey: `${parentKey}:dependencies` },
      },
    ])
  })
})
