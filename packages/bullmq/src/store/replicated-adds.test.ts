// Enqueues that are acknowledged only once a replica has the task, on real servers whose replicas are silent, cut off, missing or promoted.
import { defineCatalogue, type TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { eventually, faultProxy } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { redis } from '../client/redis-transport.ts'
import { short } from '../setup.fixture.ts'
import { follow, openProducer, openReplicated, openServer, outcome } from './replicated-server.fixture.ts'

/** For tests in which no replica responds. In ms. */
const SHORT_WAIT_MS = 50

const NOT_REPLICATED = { code: 'not_replicated', hadNoEffect: false }

describe('a replicated enqueue', () => {
  it('is acknowledged once the replica has the task, and until then delays no other enqueue', async () => {
    const { primary, replica, link } = await openReplicated()
    const { broker, task, jobKey } = await openProducer(primary.url)
    await broker.enqueue(task())
    link.cut()
    const wanted = task()
    let isAcknowledged = false
    const enqueuing = broker.enqueue(wanted).then(() => {
      isAcknowledged = true
    })
    await eventually(async () => (await primary.client.exists(jobKey(wanted.id))) === 1)
    const others = Array.from({ length: 20 }, () => task({ durability: 'primary' }))
    for (const other of others) await broker.enqueue(other)
    expect(isAcknowledged).toBe(false)
    expect(await replica.client.exists(jobKey(wanted.id))).toBe(0)
    link.mend()
    await enqueuing
    expect(await replica.client.exists(jobKey(wanted.id))).toBe(1)
  })

  it('is not lost if the primary is killed when it has been acknowledged', async () => {
    const { primary, replica, link } = await openReplicated()
    const { broker, task, jobKey } = await openProducer(primary.url)
    link.delay(20)
    const acknowledged: TaskId[] = []
    const first = Promise.withResolvers<void>()
    const calls = Array.from({ length: 200 }, async () => {
      await new Promise(setImmediate)
      const result = await outcome(broker.enqueue(task()))
      if (typeof result === 'string') acknowledged.push(result)
      first.resolve()
    })
    await first.promise
    await primary.crash()
    await Promise.all(calls)
    await replica.client.call('REPLICAOF', 'NO', 'ONE')
    expect(acknowledged.length).toBeGreaterThan(0)
    expect(await replica.client.exists(acknowledged.map((id) => jobKey(id)))).toBe(acknowledged.length)
  })

  it('fails if its connection leads to another primary before a replica has confirmed it, although that one has a replica', async () => {
    const { primary, replica, link } = await openReplicated()
    const last = await openServer()
    await follow(last, replica.url)
    const entrance = await faultProxy(primary.url)
    onTestFinished(() => entrance.close())
    const { broker, task, jobKey } = await openProducer(entrance.url)
    await broker.enqueue(task())
    link.cut()
    const wanted = task()
    const result = outcome(broker.enqueue(wanted))
    await eventually(async () => (await primary.client.exists(jobKey(wanted.id))) === 1)
    entrance.moveTo(replica.url)
    await replica.client.call('REPLICAOF', 'NO', 'ONE')
    await primary.crash()
    expect(await result).toMatchObject({ ...NOT_REPLICATED, taskId: wanted.id })
    expect(await replica.client.exists(jobKey(wanted.id))).toBe(0)
    // The caller repeats the call, and the new primary stores the task.
    await eventually(async () => (await outcome(broker.enqueue({ ...wanted, isRepeat: true }))) === wanted.id)
    expect(await last.client.exists(jobKey(wanted.id))).toBe(1)
  })

  it('is refused if the queue is full, whether a replica responds or not', async () => {
    const { url } = await openServer()
    const { broker, task } = await openProducer(url, SHORT_WAIT_MS)
    const limits = { maxTasks: 1 } as NewTask['limits']
    await broker.enqueue(task({ limits, durability: 'primary' }))
    expect(await outcome(broker.enqueue(task({ limits })))).toMatchObject({ code: 'queue_full' })
  })
})

describe('without a replica that responds', () => {
  it('a call fails in time, its task is stored, and the error says what to do', async () => {
    const { url, client } = await openServer()
    const { broker, task, jobKey } = await openProducer(url, SHORT_WAIT_MS)
    const wanted = task()
    const error = await outcome(broker.enqueue(wanted))
    expect(error).toMatchObject({ ...NOT_REPLICATED, taskId: wanted.id })
    expect(error).toHaveProperty('message', expect.stringContaining(`none has confirmed it within ${SHORT_WAIT_MS} ms`))
    expect(error).toHaveProperty('message', expect.stringContaining('send the call again with the same id'))
    expect(await client.exists(jobKey(wanted.id))).toBe(1)
  })

  const request = { key: 'k'.repeat(22), request: 'r'.repeat(11), life: 60 }
  const unique = { key: 'u', until: 'finished', onConflict: 'keep', maxDelayMs: undefined } as const

  it.each([
    ['id', (first: NewTask, _: NewTask) => ({ ...first, isRepeat: true }), {}],
    ['idempotency key', (_: NewTask, other: NewTask) => other, { idempotency: request }],
    ['unique key', (_: NewTask, other: NewTask) => other, { unique }],
  ])(
    'a repeated call with the same %s waits again, and is acknowledged when the replica is back',
    async (_, repeated, own) => {
      const { primary, replica } = await openReplicated()
      const { broker, task, jobKey } = await openProducer(primary.url, SHORT_WAIT_MS)
      replica.freeze()
      const first = task(own)
      const again = () => outcome(broker.enqueue(repeated(first, task(own))))
      const failure = { ...NOT_REPLICATED, taskId: first.id }
      expect(await outcome(broker.enqueue(first))).toMatchObject(failure)
      expect(await again()).toMatchObject(failure)
      expect(await again()).toMatchObject(failure)
      replica.thaw()
      await eventually(async () => (await again()) === first.id)
      expect(await replica.client.exists(jobKey(first.id))).toBe(1)
      expect(await broker.list({ queue: 'rig', status: 'waiting', limit: 10, cursor: undefined })).toMatchObject({
        tasks: [{ id: first.id }],
      })
    },
  )

  it('calls that come while others wait, for whichever queues, wait together', async () => {
    const { url, client } = await openServer()
    const { broker, task } = await openProducer(url, 10 * SHORT_WAIT_MS)
    await outcome(broker.enqueue(task()))
    await client.config('RESETSTAT')
    const queues = ['rig', 'other', 'third']
    const calls = Array.from({ length: 60 }, async (_, i) => {
      for (let turn = 0; turn < i; turn++) await new Promise(setImmediate)
      return outcome(broker.enqueue(task({ queue: queues[i % 3] as string })))
    })
    for (const call of calls) expect(await call).toMatchObject(NOT_REPLICATED)
    const waits = /cmdstat_wait:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]
    expect(Number(waits)).toBeLessThan(10)
  })

  it('an atomic request fails with the id of its first task, and all of its tasks are stored', async () => {
    const { url } = await openServer()
    const { broker, task } = await openProducer(url, SHORT_WAIT_MS)
    const tasks = [task({ durability: 'primary' }), task()]
    const error = await broker.enqueueAll(tasks).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ ...NOT_REPLICATED, taskId: tasks[0]?.id })
    const [one, two] = await broker.enqueueBulk([task(), task({ durability: 'primary' })])
    expect([one?.status, two?.status]).toEqual(['rejected', 'fulfilled'])
    expect((await broker.counts('rig')).waiting).toBe(4)
  })

  it('a client over Redis learns the id of the stored task, and that the call may have had its effect', async () => {
    const { url } = await openServer()
    const transport = redis(url, { catalogue: defineCatalogue(short), replicationTimeout: `${SHORT_WAIT_MS}ms` })
    onTestFinished(() => transport.close())
    const request = { task: short.name, input: {}, durability: 'replicated' } as const
    const enqueue = transport.enqueue(request, { idempotencyKey: undefined, waitMs: 0 })
    const error = await enqueue(undefined).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'not_replicated', outcome: 'unknown', taskId: expect.stringMatching(/^rig-/) })
  })
})
