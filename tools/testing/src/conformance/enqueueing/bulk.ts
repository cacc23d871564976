// Enqueueing several tasks at once.
import { MAX_ATOMIC_TASKS } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, QUEUE, short } from '../setup.ts'

export function bulk(open: OpenBackend): void {
  it('each task is stored with its own options, and tasks that are ready start in their order', async () => {
    const { create, broker, find, idsOf, start, settled } = await openSetup(open, { concurrency: 1 })
    const tasks = [create(short, { n: 1 }), create(long, {}, { delay: '1h', tags: ['a'] }), create(short, { n: 2 })]
    expect(await broker.enqueueBulk(tasks)).toMatchObject(
      tasks.map(({ id }) => ({ status: 'fulfilled', value: { id, action: 'created' } })),
    )
    expect(await idsOf('waiting')).toEqual([tasks[0]?.id, tasks[2]?.id])
    expect(await idsOf('scheduled')).toEqual([tasks[1]?.id])
    expect(await find(tasks[1]?.id as NewTask['id'])).toMatchObject({ tags: ['a'] })
    await start()
    expect(await settled(tasks[2]?.id as NewTask['id'])).toMatchObject({ status: 'completed', output: { n: 2 } })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 3, unaccounted: 0 })
  })

  it('a task that is refused does not affect the others', async () => {
    const { create, broker } = await openSetup(open)
    const tooLarge = create(long, {}, { meta: { x: 'y'.repeat(20_000) } })
    const elsewhere: NewTask = { ...create(short, {}), queue: 'no-such-queue' }
    const [first, large, unknown, last] = await broker.enqueueBulk([
      create(short, {}),
      tooLarge,
      elsewhere,
      create(short, {}),
    ])
    expect(first).toMatchObject({ status: 'fulfilled' })
    expect(large).toMatchObject({ status: 'rejected', reason: { code: 'payload_too_large' } })
    expect(unknown).toMatchObject({ status: 'rejected', reason: { code: 'queue_not_found' } })
    expect(last).toMatchObject({ status: 'fulfilled' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, unaccounted: 0 })
  })

  it('a thousand tasks are stored, and a repeated call with their idempotency keys stores nothing', async () => {
    const { create, broker } = await openSetup(open)
    const enqueue = () =>
      broker.enqueueBulk(
        Array.from({ length: 1_000 }, (_, i) => ({
          ...create(short, { n: i }),
          caller: 'only' as const,
          idempotency: idempotencyOf({ key: `k${i}`, caller: 'ann', request: 'a', life: 3_600 }),
        })),
      )
    const first = await enqueue()
    expect(first.filter(({ status }) => status === 'fulfilled')).toHaveLength(1_000)
    const again = await enqueue()
    expect(again).toEqual(
      first.map((each) => ({
        status: 'fulfilled',
        value: { ...(each.status === 'fulfilled' ? each.value : {}), replayed: { status: 'waiting' } },
      })),
    )
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1_000, unaccounted: 0 })
  })

  it('a call without tasks resolves with no results', async () => {
    const { broker } = await openSetup(open)
    expect(await broker.enqueueBulk([])).toEqual([])
  })

  it('all tasks are stored together, each with its own options and in their order', async () => {
    const { create, broker, find, idsOf, start, settled } = await openSetup(open, { concurrency: 1 })
    const tasks = [
      create(short, { n: 1 }, { priority: 2 }),
      create(short, { n: 2 }),
      create(long, {}, { delay: '1h', tags: ['a'], queueTimeout: '1m' }),
      create(short, { n: 3 }),
      create(short, { n: 4 }, { priority: 1 }),
    ]
    const [low, first, scheduled, second, high] = tasks.map(({ id }) => id)
    expect(await broker.enqueueAll(tasks)).toMatchObject(tasks.map(({ id }) => ({ id, action: 'created' })))
    expect(await idsOf('waiting')).toEqual([first, second, high, low])
    expect(await idsOf('scheduled')).toEqual([scheduled])
    expect(await find(scheduled as NewTask['id'])).toMatchObject({ tags: ['a'], status: 'scheduled' })
    await start()
    expect(await settled(low as NewTask['id'])).toMatchObject({ status: 'completed', output: { n: 1 } })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 5, unaccounted: 0 })
  })

  it('if one of the tasks is refused, none is stored, and the error has its index', async () => {
    const { create, broker } = await openSetup(open)
    const record = (request: string) => idempotencyOf({ key: 'k', caller: 'ann', request, life: 3_600 })
    await broker.enqueue({ ...create(short, {}), idempotency: record('a') })
    const reused = { ...create(short, {}), idempotency: record('b') }
    const tooLarge = create(long, {}, { meta: { x: 'y'.repeat(20_000) } })
    const elsewhere: NewTask = { ...create(short, {}), queue: 'no-such-queue' }
    const unique = create(short, {}, { unique: { key: 'k' } })
    for (const [refused, code, pointer] of [
      [reused, 'idempotency_key_reused', '/1'],
      [tooLarge, 'payload_too_large', '/1'],
      [elsewhere, 'invalid_request', '/1/task'],
      [unique, 'invalid_request', '/1/unique'],
    ] as const) {
      const call = broker.enqueueAll([create(short, {}), refused, create(short, {}, { delay: '1h' })])
      await expect(call).rejects.toMatchObject({ code, errors: [{ pointer }] })
    }
    const tooMany = Array.from({ length: MAX_ATOMIC_TASKS + 1 }, () => create(short, {}))
    await expect(broker.enqueueAll(tooMany)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1, unaccounted: 0 })
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 1, scheduled: 0 })
  })

  it('a repeated atomic call with the same idempotency keys stores nothing and gets the same ids', async () => {
    const { create, broker } = await openSetup(open)
    const enqueue = (n: number) =>
      broker.enqueueAll(
        Array.from({ length: n }, (_, i) => ({
          ...create(short, { n: i }),
          caller: 'only' as const,
          idempotency: idempotencyOf({ key: `k${i}`, caller: 'ann', request: 'a', life: 3_600 }),
        })),
      )
    const first = await enqueue(MAX_ATOMIC_TASKS - 1)
    const again = await enqueue(MAX_ATOMIC_TASKS)
    const repeated = first.map((each) => ({ ...each, replayed: { status: 'waiting' } }))
    expect(again.slice(0, -1)).toEqual(repeated)
    expect(again.at(-1)).not.toHaveProperty('replayed')
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: MAX_ATOMIC_TASKS, unaccounted: 0 })
  })

  it('an atomic call that is sent again with its own ids learns that it created the tasks', async () => {
    const { create, broker } = await openSetup(open)
    const tasks = Array.from({ length: 3 }, (): NewTask => ({ ...create(short, {}), caller: 'only' }))
    const first = await broker.enqueueAll(tasks)
    expect(await broker.enqueueAll(tasks)).toEqual(first)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 3 })
    expect(await broker.enqueueAll([])).toEqual([])
  })

  it('if the queue has no room for all tasks of an atomic call, none is stored', async () => {
    const { create, broker } = await openSetup(open)
    const limited = (): NewTask => ({ ...create(short, {}), limits: { maxTasks: 10 } })
    const tasks = (n: number) => Array.from({ length: n }, limited)
    expect(await broker.enqueueAll(tasks(7))).toHaveLength(7)
    await expect(broker.enqueueAll(tasks(4))).rejects.toMatchObject({
      code: 'queue_full',
      reached: { limit: 'maxTasks', found: 7, wanted: 4 },
      message: `queue '${QUEUE}' has no room for the request's 4 tasks: 7 tasks are waiting or scheduled, and maxTasks is 10; no task was stored, so try again later`,
    })
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 7 })
    expect(await broker.enqueueAll(tasks(3))).toHaveLength(3)
    const settled = await broker.enqueueBulk(tasks(2))
    expect(settled).toMatchObject([{ reason: { code: 'queue_full' } }, { reason: { code: 'queue_full' } }])
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 10, unaccounted: 0 })
  })

  it('if the tasks of an atomic call together exceed the limit of bytes, none is stored', async () => {
    const { create, broker } = await openSetup(open)
    await broker.enqueue(create(short, {}))
    const { bytes: one } = await broker.totals(QUEUE)
    const tasks = (n: number, maxBytes: number) =>
      Array.from({ length: n }, (): NewTask => ({ ...create(short, {}), limits: { maxBytes } }))
    await expect(broker.enqueueAll(tasks(3, 4 * one - 1))).rejects.toMatchObject({
      code: 'queue_full',
      reached: { limit: 'maxBytes', max: 4 * one - 1, found: one },
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: one, accepted: 1 })
    expect(await broker.enqueueAll(tasks(3, 4 * one))).toHaveLength(3)
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: 4 * one, accepted: 4 })
  })

  it('an atomic call whose tasks would not fit into an empty queue is rejected for good', async () => {
    const { create, broker } = await openSetup(open)
    const first = create(short, {})
    await broker.enqueue(first)
    const { bytes: one } = await broker.totals(QUEUE)
    await broker.cancel(first.id, { stoppable: true })
    const limits = { maxBytes: 3 * one - 1 }
    const tasks = Array.from({ length: 3 }, (): NewTask => ({ ...create(short, {}), limits }))
    await expect(broker.enqueueAll(tasks)).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining(
        `the call needs ${3 * one} bytes, but all tasks of queue '${QUEUE}' together may take`,
      ),
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: 0, accepted: 1 })
    // Another task waits, so that the first task of the call already exceeds the limit.
    await broker.enqueue(create(short, {}))
    const three = { code: 'payload_too_large', message: expect.stringContaining(`the call needs ${3 * one} bytes`) }
    await expect(broker.enqueueAll(tasks)).rejects.toMatchObject(three)
    expect(await broker.totals(QUEUE)).toMatchObject({ bytes: one, accepted: 2 })
  })

  it.each([
    ['maxTasks', '', { limits: { maxTasks: 3 } }],
    [
      'maxUnfinishedTasks',
      " of API key 'ann'",
      { limits: { perApiKey: { maxUnfinishedTasks: 3 } }, apiKeyName: 'ann' },
    ],
  ] as const)('an atomic call with more new tasks than %s is rejected for good', async (limit, holder, limited) => {
    const { create, broker } = await openSetup(open)
    const keyed = (i: number): NewTask => ({
      ...create(short, {}),
      ...limited,
      idempotency: idempotencyOf({ key: `k${i}`, caller: 'ann', request: 'a', life: 3_600 }),
    })
    const tasks = (n: number) => Array.from({ length: n }, (_, i) => keyed(i))
    const refused = {
      code: 'payload_too_large',
      message: `the request has 4 tasks, but queue '${QUEUE}' holds at most 3 tasks${holder} (${limit}); send fewer tasks in each request, or raise the limit`,
    }
    await expect(broker.enqueueAll(tasks(4))).rejects.toMatchObject(refused)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 0 })
    // Tasks that are already stored need no room, so the other three can be stored later.
    await broker.enqueueAll(tasks(1))
    await expect(broker.enqueueAll(tasks(4))).rejects.toMatchObject({ code: 'queue_full', reached: { wanted: 3 } })
    await expect(broker.enqueueAll(tasks(5))).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1 })
  })
}
