// Listing the concurrency keys of a queue by their waiting and their active tasks.
import type { CallOptions } from '@bullpen/contract'
import type { KeyListQuery } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { AFTER, gate, long, openSetup, QUEUE } from './setup.ts'

/** A key with characters that a program might confuse with its own. */
const ODD = 'lane:{1} "ü\n'

async function opened(open: OpenBackend) {
  const { handle, open: release, holds } = gate()
  const setup = await openSetup(open, { concurrency: 4, handle })
  const { broker, enqueue } = setup
  return {
    ...setup,
    release,
    holds,
    async enqueueSeveral(counts: Readonly<Record<string, number>>, call: CallOptions = {}) {
      for (const [concurrencyKey, count] of Object.entries(counts)) {
        for (let i = 0; i < count; i++) await enqueue(long, {}, { ...call, priority: i % 2, concurrencyKey })
      }
    },
    page: (order: KeyListQuery['order'], limit = 200, cursor?: string) =>
      broker.concurrencyKeys({ queue: QUEUE, order, limit, cursor }),
  }
}

export function concurrencyKeys(open: OpenBackend): void {
  it('concurrency keys are listed by how many of their tasks wait, page by page', async () => {
    const { enqueue, enqueueSeveral, page } = await opened(open)
    const before = Date.now()
    await enqueueSeveral({ a: 1, b: 3, [ODD]: 2, c: 3 })
    await enqueue(long, {})
    const first = await page('backlog', 2)
    const none = { concurrency: undefined, rate: undefined, blockedBy: [], nextStartAt: undefined }
    expect(first.keys).toEqual([
      { key: 'c', waiting: 3, active: 0, ...none },
      { key: 'b', waiting: 3, active: 0, ...none },
    ])
    expect(first).toMatchObject({ waitingKeys: 4, waitingTasks: 9, exact: true, next: expect.any(String) })
    // The broker's clock may be a few milliseconds behind.
    expect(first.now).toBeGreaterThan(before - 1_000)
    const second = await page('backlog', 2, first.next)
    expect(second.keys.map(({ key, waiting }) => [key, waiting])).toEqual([
      [ODD, 2],
      ['a', 1],
    ])
    expect(second.next).toBeUndefined()
  })

  it('concurrency keys are listed by how many of their tasks are active, page by page', async () => {
    const { enqueueSeveral, start, holds, page, release, drain } = await opened(open)
    await enqueueSeveral({ a: 1, [ODD]: 1 })
    await enqueueSeveral({ b: 4 })
    await start()
    await holds(4)
    const first = await page('active', 1)
    expect(first.keys).toMatchObject([{ key: 'b', waiting: 2, active: 2 }])
    const second = await page('active', 2, first.next)
    expect(second.keys).toMatchObject([
      { key: ODD, waiting: 0, active: 1 },
      { key: 'a', waiting: 0, active: 1 },
    ])
    expect(second.next).toBeUndefined()
    // A key with active tasks only has no backlog.
    expect((await page('backlog')).keys).toMatchObject([{ key: 'b' }])
    release()
    await drain()
  })

  it('a concurrency key shows its limits, and why it may start no task', async () => {
    const { backend, broker, enqueueSeveral, start, holds, page, release, drain } = await opened(open)
    const rate = { max: 1, perMs: 3_600_000, burst: 1 }
    await backend.limitKeys({ concurrency: 2 })
    await backend.limitKeys({ rate }, 'slow')
    await enqueueSeveral({ full: 3, slow: 2 })
    await start()
    await holds(3)
    const { keys } = await page('active')
    const every = { value: 2, source: 'command', isOwn: false }
    expect(keys).toEqual([
      {
        ...{ key: 'full', waiting: 1, active: 2, concurrency: every, rate: undefined },
        ...{ blockedBy: ['concurrency'], nextStartAt: undefined },
      },
      {
        ...{ key: 'slow', waiting: 1, active: 1, concurrency: every },
        ...{
          rate: { value: rate, source: 'command', isOwn: true },
          blockedBy: ['rate'],
          nextStartAt: expect.any(Number),
        },
      },
    ])
    await backend.limitKeys({ concurrency: 1 }, 'slow')
    const { keys: slow, now } = await broker.concurrencyKeys({ queue: QUEUE, concurrencyKey: 'slow' })
    expect(slow).toMatchObject([{ blockedBy: ['concurrency', 'rate'], concurrency: { value: 1, isOwn: true } }])
    expect(slow[0]?.nextStartAt).toBeGreaterThan(now)
    release()
    await drain()
  })

  it('a single concurrency key is read, whether or not it has tasks', async () => {
    const { broker, enqueueSeveral } = await opened(open)
    await enqueueSeveral({ a: 2, b: 1 })
    const read = (concurrencyKey: string) => broker.concurrencyKeys({ queue: QUEUE, concurrencyKey })
    expect(await read('a')).toMatchObject({
      keys: [{ key: 'a', waiting: 2, active: 0 }],
      waitingKeys: 2,
      waitingTasks: 3,
    })
    expect((await read('unknown')).keys).toMatchObject([{ key: 'unknown', waiting: 0, active: 0 }])
  })

  it('a queue without fairness has no concurrency keys, and an unknown queue is refused', async () => {
    const { broker, page } = await opened(open)
    const nothing = { keys: [], waitingKeys: 0, waitingTasks: 0, exact: true, next: undefined }
    for (const order of ['backlog', 'active'] as const) {
      expect(await page(order)).toMatchObject(nothing)
      expect(await broker.concurrencyKeys({ queue: AFTER, order, limit: 1, cursor: undefined })).toMatchObject(nothing)
    }
    await expect(broker.concurrencyKeys({ queue: 'none', concurrencyKey: 'a' })).rejects.toMatchObject({
      code: 'queue_not_found',
    })
  })

  it('a cursor of another listing of concurrency keys is refused', async () => {
    const { enqueueSeveral, page } = await opened(open)
    await enqueueSeveral({ a: 1, b: 1 })
    const { next = '' } = await page('backlog', 1)
    for (const [order, cursor] of [
      ['active', next],
      ['backlog', 'zzz'],
    ] as const) {
      await expect(page(order, 1, cursor)).rejects.toMatchObject({ code: 'invalid_cursor' })
    }
  })
}
