// Tests the client's bulk calls with each transport on a real Redis: over HTTP through an API, and over Redis.
import { randomUUID } from 'node:crypto'
import { defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { MAX_ATOMIC_TASKS, MAX_BULK_TASKS } from '@bullpen/contract/internal'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type BulkEnqueued, createClient, type TaskClient } from './index.ts'
import { TRANSPORTS } from './transports.fixture.ts'

const input = z.object({ n: z.int().min(0) })
const double = defineTask({ name: 'math.double', queue: 'math', input, output: z.void() })
const halve = defineTask({ name: 'math.halve', queue: 'math', kind: 'short', input, output: z.void() })
const small = defineQueue({ name: 'small', limits: { maxTasks: 2 } })
const limited = defineTask({ name: 'small.task', queue: small, input, output: z.void() })
const blocking = defineQueue({ name: 'blocking', limits: { maxTasks: 1 }, whenFull: { block: '20s' } })
const patient = defineTask({ name: 'blocking.task', queue: blocking, input, output: z.void() })
const catalogue = defineCatalogue(double, halve, limited, patient)

const CREATED = { id: expect.stringMatching(/^math-/), action: 'created', status: 'waiting' }
const inputs = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))
const idsOf = (results: readonly BulkEnqueued[]) => results.map((each) => ('id' in each ? each.id : undefined))
const stored = async (client: TaskClient, results: readonly BulkEnqueued[]) =>
  Promise.all(idsOf(results).map(async (id) => (await client.task(id ?? '')).input))
const rejection = (error: object) => ({ error: expect.objectContaining({ name: 'ProblemError', ...error }) })

describe.each(TRANSPORTS)('a bulk call over %s', (_, open) => {
  async function setup() {
    const client = createClient({ transport: await open(catalogue, `t-${randomUUID().slice(0, 12)}`) })
    onTestFinished(() => client.close())
    return client
  }

  test('stores one task for each input, with the options of the call, and returns the results in their order', async () => {
    const client = await setup()
    const results = await client.enqueueBulk(double, inputs(100), { tags: ['batch:7'] })
    expect(results).toEqual(inputs(100).map(() => CREATED))
    expect(await stored(client, results)).toEqual(inputs(100))
    expect(await client.task(idsOf(results)[99] ?? '')).toMatchObject({ tags: ['batch:7'], status: 'waiting' })
  })

  test('stores tasks of different definitions, each with its own options', async () => {
    const client = await setup()
    const results = await client.enqueueBulkNamed([
      { task: 'math.double', input: { n: 1 }, delay: '1h' },
      { task: 'small.task', input: { n: 2 }, priority: 3 },
    ])
    expect(results).toEqual([
      { ...CREATED, status: 'scheduled', expectedStartAt: expect.any(String) },
      { ...CREATED, id: expect.stringMatching(/^small-/) },
    ])
    expect(await client.task(idsOf(results)[1] ?? '')).toMatchObject({ task: 'small.task', priority: 3 })
  })

  test('returns the error of each task that is invalid, with its place in the call, and stores the others', async () => {
    const client = await setup()
    const results = await client.enqueueBulkNamed([
      { task: 'math.double', input: { n: 1 } },
      { task: 'math.double', input: { n: -1 } },
      { task: 'math.triple', input: {} },
      { task: 'math.double', input: { n: 2 }, priority: 10 },
      { task: 'math.halve', input: { n: 2 }, timeout: '1s' },
      { task: 'math.halve', input: { n: 2 } },
    ])
    const refused = (code: string, pointer: string) =>
      rejection({ code, outcome: 'refused', errors: [expect.objectContaining({ pointer })] })
    expect(results).toEqual([
      CREATED,
      refused('invalid_input', '/tasks/1/input/n'),
      refused('unknown_task', '/tasks/2'),
      refused('invalid_request', '/tasks/3/priority'),
      refused('invalid_request', '/tasks/4/timeout'),
      CREATED,
    ])
  })

  test('stores a thousand tasks and no more, and nothing without tasks', async () => {
    const client = await setup()
    expect(await client.enqueueBulk(double, [])).toEqual([])
    const results = await client.enqueueBulk(double, inputs(MAX_BULK_TASKS))
    expect(new Set(idsOf(results)).size).toBe(MAX_BULK_TASKS)
    const tooMany = client.enqueueBulk(double, inputs(MAX_BULK_TASKS + 1))
    await expect(tooMany).rejects.toMatchObject({ code: 'invalid_request', outcome: 'refused' })
  })

  test('with an idempotency key stores each task once, and refuses another task at the same index', async () => {
    const client = await setup()
    const call = (given: readonly { n: number }[]) => client.enqueueBulk(double, given, { idempotencyKey: 'batch 7' })
    const invalid = await call([{ n: 1 }, { n: -1 }, { n: 3 }])
    expect(invalid).toEqual([CREATED, rejection({ code: 'invalid_input' }), CREATED])
    const corrected = await call([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }])
    expect(corrected).toEqual([{ ...invalid[0], replayed: true }, CREATED, { ...invalid[2], replayed: true }, CREATED])
    expect(await call([{ n: 2 }, { n: 2 }])).toEqual([
      rejection({
        code: 'idempotency_key_reused',
        outcome: 'refused',
        errors: [expect.objectContaining({ pointer: '/tasks/0' })],
      }),
      { ...corrected[1], replayed: true },
    ])
    for (const idempotencyKey of ['', 'k\n0', 'k'.repeat(256)]) {
      const refused = client.enqueueBulk(double, inputs(1), { idempotencyKey })
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request', outcome: 'refused' })
    }
  })

  test('into a full queue rejects or drops the tasks for which there is no room', async () => {
    const client = await setup()
    const full = rejection({ code: 'queue_full', outcome: 'refused', retryAfterMs: 1_000 })
    const rejecting = await client.enqueueBulk(limited, inputs(4))
    expect(rejecting.filter((each) => 'id' in each)).toHaveLength(2)
    expect(rejecting.filter((each) => 'error' in each)).toEqual([full, full])
    const dropped = { action: 'dropped' }
    expect(await client.enqueueBulk(limited, inputs(2), { whenFull: 'drop' })).toEqual([dropped, dropped])
    expect(await client.enqueueBulk(limited, inputs(1), { whenFull: { block: '30ms' } })).toEqual([full])
  })

  test('waits for room if the queue’s policy says so', async () => {
    const client = await setup()
    const [first] = await client.enqueueBulk(patient, inputs(1))
    const waiting = client.enqueueBulk(patient, inputs(1))
    await client.cancel(first !== undefined && 'id' in first ? first.id : '')
    expect(await waiting).toEqual([{ ...CREATED, id: expect.stringMatching(/^blocking-/) }])
  })

  test('that is atomic stores all tasks, or rejects and stores none', async () => {
    const client = await setup()
    const atomic = true
    const results = await client.enqueueBulk(double, inputs(MAX_ATOMIC_TASKS), { atomic })
    expect(results).toEqual(inputs(MAX_ATOMIC_TASKS).map(() => CREATED))
    const invalid = client.enqueueBulk(double, [{ n: 1 }, { n: -1 }, { n: -2 }], { atomic })
    await expect(invalid).rejects.toMatchObject({
      ...{ name: 'ProblemError', code: 'invalid_input', outcome: 'refused' },
      errors: [
        { pointer: '/tasks/1/input/n', message: 'expected at least 0, got -1' },
        { pointer: '/tasks/2/input/n', message: 'expected at least 0, got -2' },
      ],
    })
    await expect(client.enqueueBulk(limited, inputs(3), { atomic })).rejects.toMatchObject({
      ...{ code: 'payload_too_large', outcome: 'refused' },
      detail: expect.stringContaining('the request has 3 tasks, but queue'),
    })
    expect(await client.enqueueBulk(limited, inputs(2), { atomic })).toHaveLength(2)
    await expect(client.enqueueBulk(limited, inputs(1), { atomic })).rejects.toMatchObject({
      ...{ code: 'queue_full', outcome: 'refused', retryAfterMs: 1_000 },
    })
  })

  test.each([
    ['more tasks than one script may store', inputs(MAX_ATOMIC_TASKS + 1), {}, 'payload_too_large'],
    ['a unique key', inputs(2), { unique: { key: 'k' } }, 'invalid_request'],
    ['a policy for a full queue', inputs(2), { whenFull: 'drop' }, 'invalid_request'],
  ] as const)('that is atomic and has %s is refused', async (_case, given, options, code) => {
    const client = await setup()
    const call = client.enqueueBulk(double, given, { ...options, atomic: true })
    await expect(call).rejects.toMatchObject({ code, outcome: 'refused' })
  })

  test('that is atomic and has tasks of two queues is refused', async () => {
    const client = await setup()
    const tasks = [
      { task: 'math.double', input: { n: 1 } },
      { task: 'small.task', input: { n: 1 } },
    ]
    await expect(client.enqueueBulkNamed(tasks, { atomic: true })).rejects.toMatchObject({
      ...{ code: 'invalid_request', outcome: 'refused', errors: [{ pointer: '/tasks/1/task' }] },
    })
  })

  test('stops when the signal aborts', async () => {
    const client = await setup()
    await client.enqueueBulk(patient, inputs(1))
    const stop = new AbortController()
    const waiting = client.enqueueBulk(patient, inputs(1), { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })
})
