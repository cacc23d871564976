import { isFinal, makeTaskId, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { privateRedis } from '@bullpen/testkit/internal'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { long, rig, short } from './rig.fixture.ts'

describe('a task, as the broker tells it', () => {
  it('waits, with all that was said when it was enqueued', async () => {
    const { enqueue, broker } = await rig()
    const id = await enqueue(short, {
      input: { n: 5 },
      meta: { tenant: 'a' },
      correlationId: 'c-1',
      enqueuedAt: 1_700_000_000_000,
    })
    expect(await broker.find(id)).toMatchObject({
      id,
      task: 'rig.short',
      version: 1,
      queue: 'rig',
      status: 'waiting',
      starts: 0,
      attempts: 0,
      maxAttempts: 3,
      input: { n: 5 },
      meta: { tenant: 'a' },
      correlationId: 'c-1',
      enqueuedAt: 1_700_000_000_000,
      history: [],
    })
  })

  it('is scheduled while its delay lasts, and due when that ends', async () => {
    const { enqueue, broker } = await rig()
    const before = Date.now()
    const record = await broker.find(await enqueue(short, { delayMs: 60_000 }))
    expect(record?.status).toBe('scheduled')
    expect(record?.dueAt).toBeGreaterThanOrEqual(before + 60_000)
    expect(record?.dueAt).toBeLessThan(Date.now() + 61_000)
  })

  it('is active while it runs, with its progress, and completed after, with its output and its end', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const running = Promise.withResolvers<void>()
    const { enqueue, broker, startPool, settled } = await rig({
      handle: async ({ input, progress }) => {
        await progress(0.25, 'a quarter')
        running.resolve()
        await promise
        return input
      },
    })
    const id = await enqueue(long, { input: { n: 3 } })
    await startPool()
    await running.promise
    expect(await broker.find(id)).toMatchObject({
      status: 'active',
      starts: 1,
      progress: { fraction: 0.25, note: 'a quarter' },
    })
    resolve()
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      output: { n: 3 },
      progress: undefined,
      attempts: 1,
      history: [{ state: 'DONE_SUCCESS', start: 1, attempt: 1, process: 'test:0' }],
    })
  })

  it('is retrying between attempts, then dead, with every end and its last error kept', async () => {
    const { enqueue, broker, startPool, settled } = await rig({
      handle: ({ attempt }) => {
        throw attempt === 1 ? new TaskError('busy', 'not now') : new Error('broken')
      },
    })
    const id = await enqueue(short, { maxAttempts: 2 })
    await startPool()
    const retrying = await eventually(async () => {
      const record = await broker.find(id)
      return record?.status === 'retrying' && record
    })
    expect(retrying).toMatchObject({
      attempts: 1,
      history: [{ state: 'DONE_ERROR', code: 'busy', message: 'not now' }],
    })
    expect(retrying.dueAt).toBeGreaterThan(Date.now() - 1_000)
    const dead = await settled(id)
    expect(dead).toMatchObject({
      status: 'dead',
      attempts: 2,
      history: [
        { attempt: 1, state: 'DONE_ERROR', code: 'busy' },
        { attempt: 2, state: 'RECOVER_ERR', reason: 'unexpected_error', message: 'Error: broken' },
      ],
    })
    const [first, second] = dead?.history ?? []
    expect((second?.beganAt ?? 0) - (first?.endedAt ?? 0)).toBeGreaterThanOrEqual(990)
  })

  it('is not there when nobody enqueued it, nor in a queue that nobody knows', async () => {
    const { broker } = await rig()
    expect(await broker.find(makeTaskId('rig', 1, new Uint8Array(10)))).toBeUndefined()
    expect(await broker.find(makeTaskId('elsewhere', 1, new Uint8Array(10)))).toBeUndefined()
    expect(await broker.settled(makeTaskId('rig', 1, new Uint8Array(10)), AbortSignal.timeout(1_000))).toBeUndefined()
  })
})

describe('enqueueing', () => {
  it('the same id twice stores one task: a lost reply and a resend double nothing', async () => {
    const { enqueue, broker } = await rig()
    const id = await enqueue(short, { input: { n: 1 } })
    await enqueue(short, { id, input: { n: 2 } })
    expect(await broker.counts('rig')).toMatchObject({ waiting: 1 })
    expect(await broker.find(id)).toMatchObject({ input: { n: 1 } })
  })

  it('refuses what is larger than the limit, and stores nothing of it', async () => {
    const { enqueue, broker } = await rig()
    await expect(enqueue(short, { input: 'x'.repeat(10_000) })).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await broker.counts('rig')).toMatchObject({ waiting: 0 })
  })

  it('refuses a queue that the catalogue does not have', async () => {
    const { enqueue } = await rig()
    await expect(enqueue(short, { queue: 'gir' })).rejects.toMatchObject({ code: 'queue_not_found' })
  })
})

describe('waiting for the end', () => {
  it('misses nobody, whether the task ends before, while or after the waiting begins', async () => {
    const { enqueue, startPool, settled } = await rig()
    await startPool()
    const waits = Array.from({ length: 200 }, async (_, n) => settled(await enqueue(short, { input: { n } })))
    const records = await Promise.all(waits)
    expect(records.map((record) => record?.output)).toEqual(Array.from({ length: 200 }, (_, n) => ({ n })))
  })

  it('is over soon after the end: long before a look by oneself would come', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { enqueue, startPool, settled } = await rig({ handle: () => promise.then(() => ({ n: 1 })) })
    const id = await enqueue(long)
    await startPool()
    const latencies: number[] = []
    const waiting = settled(id).then(() => latencies.push(performance.now()))
    await new Promise((wait) => setTimeout(wait, 300))
    const ended = performance.now()
    resolve()
    await waiting
    expect((latencies[0] ?? Number.NaN) - ended).toBeLessThan(500)
  })

  it('is refused within a second when Redis does not answer, and goes on when it does', async () => {
    const server = await privateRedis()
    await server.start()
    const { enqueue, settled, startPool } = await rig({ redisUrl: server.url })
    const id = await enqueue(short, { input: { n: 4 } })
    server.freeze()
    const began = performance.now()
    await expect(settled(id)).rejects.toMatchObject({ code: 'redis_unavailable' })
    expect(performance.now() - began).toBeLessThan(1_000)
    server.thaw()
    await startPool()
    expect(await eventually(() => settled(id).catch(() => undefined))).toMatchObject({ output: { n: 4 } })
  })

  it('gives the task as it stands when the caller waits no longer', async () => {
    const { enqueue, broker } = await rig()
    const record = await broker.settled(await enqueue(short), AbortSignal.timeout(50))
    expect(record?.status).toBe('waiting')
  })
})

describe('a listing', () => {
  it('gives the waiting ones in the order in which they will run, each once, over pages', async () => {
    const { enqueue, broker } = await rig()
    const ids: string[] = []
    for (let n = 0; n < 23; n++) ids.push(await enqueue(short))
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await broker.list({ queue: 'rig', status: 'waiting', limit: 5, cursor })
      seen.push(...page.tasks.map(({ id }) => id))
      cursor = page.next
    } while (cursor !== undefined)
    expect(seen).toEqual(ids)
  })

  it('misses none that goes on waiting while others are taken between its pages', async () => {
    const { enqueue, broker, redisUrl, namespace } = await rig()
    const ids: string[] = []
    for (let n = 0; n < 40; n++) ids.push(await enqueue(short))
    const redis = new Redis(redisUrl)
    const first = await broker.list({ queue: 'rig', status: 'waiting', limit: 10, cursor: undefined })
    // As a worker takes them: five that were shown, then all ten and two more.
    for (const takes of [5, 7]) {
      for (let n = 0; n < takes; n++) await redis.rpop(`{${namespace}.rig}:rig:wait`)
      const left = ids.slice(takes === 5 ? 10 : 12, takes === 5 ? 20 : 22)
      const next = await broker.list({ queue: 'rig', status: 'waiting', limit: 10, cursor: first.next })
      expect(next.tasks.map(({ id }) => id)).toEqual(left)
    }
    redis.disconnect()
  })

  it.each([1, 7, 50])('gives ended ones each once, %i a page, though many ended in one millisecond', async (limit) => {
    const { enqueue, broker, startPool, settled } = await rig({ concurrency: 50 })
    const ids = await Promise.all(Array.from({ length: 40 }, () => enqueue(short)))
    await startPool()
    for (const id of ids) await settled(id)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await broker.list({ queue: 'rig', status: 'completed', limit, cursor })
      seen.push(...page.tasks.map(({ id }) => id))
      cursor = page.next
    } while (cursor !== undefined)
    expect(seen.toSorted()).toEqual(ids.toSorted())
  })

  it('of scheduled ones leaves out those that are retrying, which share their set', async () => {
    const { enqueue, broker, startPool } = await rig({
      handle: () => {
        throw new TaskError('busy', '', { retryAfter: '1h' })
      },
    })
    const failing = await enqueue(short)
    const scheduled = await enqueue(short, { delayMs: 60_000 })
    await startPool()
    await eventually(async () => (await broker.find(failing))?.status === 'retrying')
    const idsOf = async (status: 'scheduled' | 'retrying') =>
      (await broker.list({ queue: 'rig', status, limit: 10, cursor: undefined })).tasks.map(({ id }) => id)
    expect(await idsOf('scheduled')).toEqual([scheduled])
    expect(await idsOf('retrying')).toEqual([failing])
  })

  it('is empty for an empty queue', async () => {
    const { broker } = await rig()
    for (const status of ['waiting', 'active', 'completed', 'dead'] as const) {
      expect(await broker.list({ queue: 'rig', status, limit: 10, cursor: undefined })).toEqual({
        tasks: [],
        next: undefined,
      })
    }
  })

  it.each([
    '',
    'x',
    'e30',
    Buffer.from('{"queue":"rig","status":"waiting","at":{"score":1,"passed":-1}}').toString('base64url'),
  ])('refuses the cursor %j, and one of another listing', async (cursor) => {
    const { broker, enqueue } = await rig()
    await expect(broker.list({ queue: 'rig', status: 'waiting', limit: 1, cursor })).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
    await enqueue(short)
    await enqueue(short)
    const { next } = await broker.list({ queue: 'rig', status: 'waiting', limit: 1, cursor: undefined })
    await expect(broker.list({ queue: 'rig', status: 'dead', limit: 1, cursor: next })).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
  })

  it('counts by status', async () => {
    const { enqueue, broker, startPool, settled } = await rig()
    const done = await enqueue(short)
    await startPool()
    expect(isFinal((await settled(done))?.status ?? 'waiting')).toBe(true)
    await enqueue(short, { delayMs: 60_000 })
    expect(await broker.counts('rig')).toMatchObject({ waiting: 0, active: 0, scheduled: 1, completed: 1, dead: 0 })
  })
})
