// Which of the waiting tasks starts first.
import type { TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, short } from '../setup.ts'

export function priorities(open: OpenBackend): void {
  it('waiting tasks start by priority, and those of the same priority in the order in which they were enqueued', async () => {
    const started: TaskId[] = []
    const { enqueue, start, settled } = await openSetup(open, {
      concurrency: 1,
      handle: ({ id, input }) => {
        started.push(id)
        return input
      },
    })
    const ids = new Map<string, TaskId>()
    for (const name of ['9a', '0a', '5a', '0b', '5b', '1a', '9b']) {
      ids.set(name, await enqueue(short, {}, { priority: Number(name[0]) }))
    }
    await start()
    for (const id of ids.values()) expect((await settled(id))?.status).toBe('completed')
    expect(started).toEqual([...ids].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, id]) => id))
  })

  it('a scheduled task keeps its priority when it is due', async () => {
    const { entered, handle, open: release, holds } = gate()
    const { enqueue, start, settled, find } = await openSetup(open, { concurrency: 1, handle })
    await start()
    const running = await enqueue(long, {})
    await holds(1)
    const last = await enqueue(long, {}, { priority: 5 })
    const late = await enqueue(long, {}, { priority: 4, delay: '50ms' })
    const { dueAt = 0 } = await find(late)
    const first = await enqueue(long, {}, { priority: 3 })
    // A store's clock may be a little behind this one.
    await eventually(() => Date.now() > dueAt + 5)
    release()
    for (const id of [running, first, late, last]) await settled(id)
    expect(entered).toEqual([running, first, late, last])
  })

  it('a requeued task is the first of its priority, and an idle worker takes it at once', async () => {
    const { entered, handle, open: release, holds } = gate()
    const { enqueue, pool, settled, find } = await openSetup(open, { concurrency: 1, handle })
    const first = await enqueue(long, {}, { priority: 3 })
    const draining = pool('test:1')
    await draining.start()
    await holds(1)
    const [second, urgent] = [await enqueue(long, {}, { priority: 3 }), await enqueue(long, {}, { priority: 1 })]
    await draining.drain({ drainMs: 0, graceMs: 1_000 })
    expect(await find(first)).toMatchObject({ status: 'waiting', attemptsMade: 0, priority: 3 })
    release()
    await pool('test:2').start()
    for (const id of [first, second, urgent]) expect((await settled(id))?.status).toBe('completed')
    expect(entered).toEqual([first, urgent, first, second])
  })

  it('a waiting task with a priority can be listed, counted and cancelled', async () => {
    const { enqueue, broker, idsOf, find } = await openSetup(open)
    const ids = [await enqueue(long, {}, { priority: 0 }), await enqueue(long, {}, { priority: 2 })]
    expect(await idsOf('waiting')).toEqual(expect.arrayContaining(ids))
    expect(await broker.counts('conformance')).toMatchObject({ waiting: 2 })
    expect(await broker.cancel(ids[1] as TaskId, { stoppable: true })).toBe('cancelled')
    expect(await find(ids[1] as TaskId)).toMatchObject({ status: 'cancelled' })
  })
}
