// Tests the transport over Redis: what is stored if replies are lost, and what the errors say about it. The client that uses the
// transport has tests in packages/client.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineCatalogue, defineQueue, defineTask, type EnqueueRequest, type TaskId } from '@bullpen/contract'
import {
  createGroupId,
  type EnqueuedTask,
  ID_RANDOM_BYTES,
  ProblemError,
  type TaskTransport,
  type Try,
} from '@bullpen/contract/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { silent } from '../setup.fixture.ts'
import { type RedisOptions, redis } from './redis-transport.ts'

const TRACE = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }
const schemas = { input: z.object({ n: z.int().min(0) }), output: z.void() }
const long = defineTask({ name: 'rig.long', queue: 'rig', ...schemas })
const short = defineTask({ name: 'rig.short', queue: 'rig', kind: 'short', ...schemas })
const any = defineTask({ name: 'rig.any', queue: 'rig', input: z.unknown(), output: z.void() })
const catalogue = defineCatalogue(long, short, any)
const LONG: EnqueueRequest = { task: 'rig.long', input: { n: 1 } }

/** Opens a transport through `url`, and a broker that looks at what it has stored. */
async function open({ url = inject('redisUrl'), storedAt = url, ...options }: Partial<RedisOptions> & Addresses = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const transport = redis(url, { catalogue, namespace, ...options })
  const broker = openPatientBroker({ redisUrl: storedAt, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent })
  onTestFinished(async () => {
    await transport.close()
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  return { transport, broker, namespace, url }
}

interface Addresses {
  readonly url?: string
  readonly storedAt?: string
}

async function redisBehindProxy() {
  const server = await privateRedis()
  await server.start()
  const proxy = await faultProxy(server.url)
  onTestFinished(() => proxy.close())
  return { server, proxy }
}

/** Prepares an enqueue of a task that is not dropped. */
function enqueue(transport: TaskTransport, request = LONG, idempotencyKey?: string): Try<EnqueuedTask> {
  const send = transport.enqueue(request, { idempotencyKey, waitMs: 0 })
  return async (signal) => {
    const stored = await send(signal)
    if (stored.action === 'dropped') throw new Error('the task was dropped')
    return stored
  }
}

/** Calls a try until it succeeds, as a client does. */
const untilDone = <T>(attempt: (signal: undefined) => Promise<T>): Promise<T> =>
  eventually(() =>
    attempt(undefined).catch((error: unknown) => {
      if (error instanceof ProblemError && error.code === 'redis_unavailable') return undefined
      throw error
    }),
  )

const errorOf = (transport: TaskTransport, request: EnqueueRequest, key?: string): Promise<unknown> =>
  // The transport throws some errors before anything is sent.
  Promise.resolve()
    .then(() => enqueue(transport, request, key)(undefined))
    .then(
      () => expect.unreachable(),
      (error: unknown) => error,
    )

describe('an enqueue over Redis', () => {
  it('stores the task, also if it is the first call after the transport was opened', async () => {
    const { transport, broker } = await open({ correlationId: 'order-7', tracing: { current: () => TRACE } })
    const send = enqueue(transport, { ...LONG, delay: '1h', tags: ['a'] })
    const { id, ...stored } = await send(undefined)
    expect(stored).toEqual({ action: 'created', status: 'scheduled', expectedStartAt: expect.any(String) })
    expect(await eventually(() => broker.find(id as TaskId).catch(() => undefined))).toMatchObject({
      ...{
        id,
        task: 'rig.long',
        input: { n: 1 },
        status: 'scheduled',
        tags: ['a'],
        correlationId: 'order-7',
        traceContext: TRACE,
      },
    })
  })

  it('has the same id in each try, so that any number of tries stores one task', async () => {
    const { transport, broker } = await open()
    const send = enqueue(transport)
    const tries = await Promise.all([send(undefined), send(undefined), send(undefined)])
    expect(new Set(tries.map(({ id }) => id)).size).toBe(1)
    expect(new Set(tries.map(({ action }) => action))).toEqual(new Set(['created']))
    expect(await eventually(() => broker.counts('rig').catch(() => undefined))).toMatchObject({ waiting: 1 })
  })

  it('stores one task each if Redis’s replies are lost', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport, broker } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    const ids: string[] = []
    let storedUnseen = 0
    for (let round = 0; round < 4; round++) {
      const sends = Array.from({ length: 25 }, () => enqueue(transport))
      proxy.cutAnswers()
      await Promise.allSettled(sends.map((send) => send(undefined)))
      storedUnseen += (await broker.counts('rig')).waiting - ids.length - 1
      proxy.reset()
      ids.push(...(await Promise.all(sends.map(untilDone))).map(({ id }) => id))
    }
    expect(storedUnseen).toBeGreaterThan(0)
    expect(new Set(ids).size).toBe(100)
    expect(await broker.counts('rig')).toMatchObject({ waiting: 101 })
    for (const id of ids) expect(await broker.find(id as TaskId)).toMatchObject({ id })
  })

  it('stores nothing in a later try if the task was stored and has been deleted', async () => {
    const { transport, broker } = await open()
    const send = enqueue(transport)
    const { id } = await send(undefined)
    await broker.boardQueues[0]?.remove(id)
    expect(await send(undefined)).toMatchObject({ id, action: 'created' })
    expect(await broker.totals('rig')).toMatchObject({ accepted: 1, removed: 1, unaccounted: 0 })
  })

  it('with an idempotency key stores one task, whichever call comes first', async () => {
    const { transport, broker } = await open()
    const answers = await Promise.all(Array.from({ length: 20 }, () => untilDone(enqueue(transport, LONG, 'order 17'))))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(await eventually(() => broker.counts('rig').catch(() => undefined))).toMatchObject({ waiting: 1 })
    expect(await errorOf(transport, { ...LONG, input: { n: 2 } }, 'order 17')).toMatchObject({
      code: 'idempotency_key_reused',
      outcome: 'refused',
    })
  })
})

describe('an enqueue over Redis into a full queue', () => {
  const small = defineQueue({ name: 'rig', limits: { maxTasks: 1 } })
  const limited = defineCatalogue(defineTask({ name: 'rig.long', queue: small, ...schemas }))

  it('is rejected, dropped, or waits for room, as its policy says', async () => {
    const { transport } = await open({ catalogue: limited })
    const { id } = await untilDone(enqueue(transport))
    expect(await errorOf(transport, LONG)).toMatchObject({
      ...{ code: 'queue_full', outcome: 'refused', taskId: undefined, retryAfterMs: 1_000 },
    })
    const dropping = transport.enqueue({ ...LONG, whenFull: 'drop' }, { idempotencyKey: undefined, waitMs: 0 })
    expect(await dropping(undefined)).toEqual({ action: 'dropped' })
    expect(await errorOf(transport, { ...LONG, whenFull: { block: '30ms' } })).toMatchObject({ code: 'queue_full' })
    const blocked = enqueue(transport, { ...LONG, whenFull: { block: '20s' } })(undefined)
    await transport.cancel(id, { waitMs: 0, by: undefined })(undefined)
    expect(await blocked).toMatchObject({ action: 'created', status: 'waiting' })
  })

  it('succeeds when it is repeated although its own task has filled the queue', async () => {
    const { transport } = await open({ catalogue: limited })
    const send = enqueue(transport)
    const first = await untilDone(send)
    expect(await send(undefined)).toEqual(first)
  })
})

describe('a bulk call over Redis', () => {
  const requests = (count: number): readonly EnqueueRequest[] =>
    Array.from({ length: count }, (_, n) => ({ ...LONG, input: { n } }))
  const each = { idempotencyKey: undefined, waitMs: 0, atomic: false }
  const together = { ...each, atomic: true }
  const unknown = { code: 'redis_unavailable', outcome: 'unknown' }

  it('says of each task that it may be stored if Redis’s replies are lost, and stores each once if it is repeated', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport, broker } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    const send = transport.enqueueBulk([...requests(20), { ...LONG, input: { n: -1 } }], each)
    proxy.cutAnswers()
    const lost = await send(undefined)
    expect(lost).toHaveLength(21)
    for (const result of lost.slice(0, 20)) expect(result).toMatchObject({ error: unknown })
    expect(lost[20]).toMatchObject({ error: { code: 'invalid_input', outcome: 'refused', taskId: undefined } })
    expect((await broker.counts('rig')).waiting).toBeGreaterThan(1)
    proxy.reset()
    const results = await eventually(async () => {
      const latest = await send(undefined)
      return latest.filter((result) => 'id' in result).length === 20 ? latest : undefined
    })
    const created = results.flatMap((result) => ('id' in result ? [result] : []))
    expect(created.map(({ id }) => id)).toEqual(
      lost.slice(0, 20).map((result) => ('error' in result ? result.error.taskId : undefined)),
    )
    expect(new Set(created.map(({ action }) => action))).toEqual(new Set(['created']))
    expect(await broker.counts('rig')).toMatchObject({ waiting: 21 })
  })

  it('does not send a task again that is known to be stored', async () => {
    const { transport, broker } = await open()
    await untilDone(enqueue(transport))
    const send = transport.enqueueBulk(requests(2), each)
    const first = await send(undefined)
    const [queue] = broker.boardQueues
    for (const result of first) if ('id' in result) await queue?.remove(result.id)
    expect(await send(undefined)).toEqual(first)
    expect(await broker.counts('rig')).toMatchObject({ waiting: 1 })
  })

  it('that is atomic has the id of the first task if its outcome is unknown, and stores all once if it is repeated', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport, broker } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    const send = transport.enqueueBulk(requests(20), together)
    proxy.cutAnswers()
    const error = await send(undefined).catch((caught: unknown) => caught as ProblemError)
    expect(error).toMatchObject({ name: 'ProblemError', ...unknown })
    proxy.reset()
    const results = await untilDone(send)
    expect(results.map((result) => 'action' in result && result.action)).toEqual(requests(20).map(() => 'created'))
    expect(results[0]).toMatchObject({ id: (error as ProblemError).taskId })
    expect(await broker.counts('rig')).toMatchObject({ waiting: 21 })
  })

  it('refuses every task if there is no connection', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    await proxy.close()
    const send = transport.enqueueBulk(requests(2), each)
    const refused = { error: { code: 'redis_unavailable', outcome: 'refused', taskId: undefined } }
    const results = await eventually(async () => {
      const latest = await send(undefined)
      return latest.every((result) => 'error' in result && result.error.outcome === 'refused') ? latest : undefined
    })
    expect(results).toMatchObject([refused, refused])
  })

  it('rejects with the reason of the signal if it is aborted', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    proxy.cutAnswers()
    const stop = new AbortController()
    const sent = transport.enqueueBulk(requests(2), each)(stop.signal)
    stop.abort(new Error('enough'))
    await expect(sent).rejects.toThrow('enough')
  })
})

describe('the error of an enqueue over Redis', () => {
  it.each([
    [
      { task: 'rig.lon', input: {} },
      { code: 'unknown_task', message: expect.stringContaining('rig.long') },
    ],
    [
      { ...LONG, input: { n: -1 } },
      { code: 'invalid_input', errors: [expect.objectContaining({ pointer: '/input/n' })] },
    ],
    [
      { ...LONG, priority: 10 },
      { code: 'invalid_request', errors: [expect.objectContaining({ pointer: '/priority' })] },
    ],
    [{ task: 'rig.short', input: { n: 1 }, timeout: '1s' } as const, { code: 'invalid_request' }],
  ])('says that %j was refused', async (request, expected) => {
    const { transport, broker } = await open()
    expect(await errorOf(transport, request)).toMatchObject({ name: 'ProblemError', outcome: 'refused', ...expected })
    expect(await eventually(() => broker.totals('rig').catch(() => undefined))).toMatchObject({ accepted: 0 })
  })

  it('says that a key which could change prototypes was refused, and where it is, as over HTTP', async () => {
    const { transport, broker } = await open()
    const poison = JSON.parse('{"__proto__":"a"}')
    const refused = (pointer: string) => ({
      ...{ name: 'ProblemError', code: 'invalid_request', outcome: 'refused' },
      errors: [expect.objectContaining({ pointer })],
    })
    const followUp = { task: 'rig.any', input: {}, meta: poison }
    for (const [request, pointer] of [
      [{ ...LONG, meta: poison }, '/meta/__proto__'],
      [{ ...LONG, onEnd: [followUp] }, '/onEnd/0/meta/__proto__'],
      [{ task: 'rig.any', input: [poison] }, '/input/0/__proto__'],
      [{ task: 'rig.any', input: { toJSON: () => poison } }, '/input/__proto__'],
    ] as const) {
      expect(await errorOf(transport, request)).toMatchObject(refused(pointer))
      const bulk = transport.enqueueBulk([LONG, request], { idempotencyKey: undefined, atomic: true, waitMs: 0 })
      await expect(bulk(undefined)).rejects.toMatchObject(refused(`/tasks/1${pointer}`))
    }
    const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    await expect(transport.groups.create({ id, onEnd: [followUp] })(undefined)).rejects.toMatchObject(
      refused('/onEnd/0/meta/__proto__'),
    )
    const meta = { constructor: 'a', prototype: 'b' } as never
    const { id: stored } = await untilDone(enqueue(transport, { ...LONG, meta }))
    expect(await broker.find(stored as TaskId)).toMatchObject({ meta })
  })

  it('says that an input which JSON cannot represent was refused, as over HTTP', async () => {
    const { transport } = await open()
    const input: { n: number; self?: object } = { n: 1 }
    input.self = input
    const request = { task: 'rig.any', input }
    const detail = 'the input cannot be written as JSON: Converting circular structure to JSON'
    const refused = { name: 'ProblemError', code: 'invalid_input', outcome: 'refused', detail }
    expect(await errorOf(transport, request)).toMatchObject(refused)
    expect(() => enqueue(transport, request, 'k')).toThrow(expect.objectContaining({ code: 'invalid_input' }))
    const bulk = transport.enqueueBulk([LONG, request], { idempotencyKey: undefined, atomic: false, waitMs: 0 })
    expect(await bulk(undefined)).toMatchObject([{ action: 'created' }, { error: { code: 'invalid_input' } }])
    const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    await transport.groups.create({ id })(undefined)
    const add = transport.groups.add(id, { tasks: [request] }, 'k')
    await expect(add(undefined)).rejects.toMatchObject({
      name: 'ProblemError',
      code: 'invalid_input',
      outcome: 'refused',
    })
  })

  it('says that a task which is too large was refused', async () => {
    const { transport } = await open({ sizeLimit: 10 })
    expect(await errorOf(transport, LONG)).toMatchObject({ code: 'payload_too_large', outcome: 'refused' })
  })

  it('says that nothing was sent while there is no connection', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    await proxy.close()
    const error = await eventually(async () => {
      const caught = (await errorOf(transport, LONG)) as ProblemError
      return caught.outcome === 'refused' ? caught : undefined
    })
    expect(error).toMatchObject({ code: 'redis_unavailable', taskId: undefined })
  })

  it('has the id of a task that may have been stored', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport, broker } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    proxy.cutAnswers()
    const error = (await errorOf(transport, LONG)) as ProblemError
    expect(error).toMatchObject({ code: 'redis_unavailable', outcome: 'unknown' })
    expect(await broker.find(error.taskId as TaskId)).toMatchObject({ input: { n: 1 } })
    // With an idempotency key, the task may have another id.
    expect(await errorOf(transport, LONG, 'k')).toMatchObject({ outcome: 'unknown', taskId: undefined })
  })

  it('is the reason of the signal if the call is aborted', async () => {
    const { server, proxy } = await redisBehindProxy()
    const { transport } = await open({ url: proxy.url, storedAt: server.url })
    await untilDone(enqueue(transport))
    proxy.cutAnswers()
    const stop = new AbortController()
    const reason = new Error('enough')
    const sent = enqueue(transport)(stop.signal)
    stop.abort(reason)
    await expect(sent).rejects.toBe(reason)
    await expect(enqueue(transport)(stop.signal)).rejects.toBe(reason)
  })
})

it('a closed transport refuses calls, and a transport is not opened without a catalogue', async () => {
  const { transport } = await open()
  await transport.close()
  const refused = { code: 'wrong_state', outcome: 'refused', detail: expect.stringContaining('the client is closed') }
  expect(await errorOf(transport, LONG)).toMatchObject(refused)
  await expect(transport.task('rig-01jd3v7n8q0000000000000000', 0)(undefined)).rejects.toMatchObject(refused)
  expect(() => redis(inject('redisUrl'), undefined as never)).toThrow('redis(url, { catalogue })')
})

describe('a task over Redis', () => {
  it('is shown, awaited for a time, and cancelled', async () => {
    const { transport } = await open()
    const { id } = await untilDone(enqueue(transport))
    expect(await transport.task(id, 0)(undefined)).toMatchObject({ id, status: 'waiting', input: { n: 1 } })
    expect(await transport.task(id, 30)(undefined)).toMatchObject({ status: 'waiting' })
    const waiting = transport.task(id, 30_000)(undefined)
    const cancelled = { id, outcome: 'cancelled', status: 'cancelled' }
    expect(await transport.cancel(id, { waitMs: 0, by: 'ann' })(undefined)).toMatchObject(cancelled)
    expect(await waiting).toMatchObject({ status: 'cancelled', attempts: [{ by: 'ann' }] })
    expect(await transport.cancel(id, { waitMs: 0, by: undefined })(undefined)).toMatchObject({
      outcome: 'already_ended',
    })
  })

  it.each(['rig-01jd3v7n8q0000000000000000', 'nowhere-01jd3v7n8q0000000000000000', 'no id'])(
    '%s is not found',
    async (id) => {
      const { transport } = await open()
      const notFound = { name: 'ProblemError', code: 'task_not_found', outcome: 'refused' }
      await expect(transport.task(id, 0)(undefined)).rejects.toMatchObject(notFound)
      await expect(transport.task(id, 10)(undefined)).rejects.toMatchObject(notFound)
      await expect(transport.cancel(id, { waitMs: 0, by: undefined })(undefined)).rejects.toMatchObject(notFound)
    },
  )
})

it('a wrong URL is refused when the transport is opened', () => {
  expect(() => redis('localhost:6379', { catalogue })).toThrow(
    expect.objectContaining({ code: 'invalid_configuration' }),
  )
})

it.each([
  [{ onError: 'stop' }, '/onError'],
  [{ timeout: '1h' }, '/timeout'],
  [{ totalTimeout: '40d' }, '/totalTimeout'],
  [{ by: '' }, '/by'],
])('a group with the settings %j is refused, as the API refuses it', async (settings, pointer) => {
  const { transport, broker } = await open()
  const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  const create = transport.groups.create({ ...(settings as object), id })
  await expect(create(undefined)).rejects.toMatchObject({ code: 'invalid_request', errors: [{ pointer }] })
  expect(await broker.groups.find(id)).toBeUndefined()
})
