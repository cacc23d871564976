// Conformance: cancelling a task, whatever it is doing.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openStage, short } from './stage.ts'

const LONG = { stoppable: true }

export function cancels(open: OpenBackend): void {
  it('that waits or is scheduled never runs, and stays visible as cancelled', async () => {
    const { enqueue, start, settled, broker, events } = await openStage(open)
    const [waits, later, other] = [
      await enqueue(long, {}),
      await enqueue(short, {}, { delay: '1h' }),
      await enqueue(long, { n: 7 }),
    ]
    expect(await broker.cancel(waits, LONG)).toBe('cancelled')
    expect(await broker.cancel(later, { stoppable: false })).toBe('cancelled')
    for (const id of [waits, later]) {
      expect(await settled(id)).toMatchObject({
        status: 'cancelled',
        fencingToken: 0,
        attempts: [{ fencingToken: 0, counted: false, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
      })
    }
    await start()
    expect((await settled(other))?.output).toEqual({ n: 7 })
    expect(events.filter(({ event }) => event === 'attempt.started')).toHaveLength(1)
    expect(await broker.cancel(waits, LONG)).toBe('already_ended')
    const { tasks } = await broker.list({ queue: 'rig', status: 'cancelled', limit: 10, cursor: undefined })
    expect(tasks.map(({ id }) => id).toSorted()).toEqual([waits, later].toSorted())
  })

  it('that is retrying ends as cancelled, with the ends before it', async () => {
    const { enqueue, start, find, settled, broker } = await openStage(open, {
      handle: () => {
        throw new TaskError('busy', 'not now', { retryAfter: '1h' })
      },
    })
    await start()
    const id = await enqueue(long, {})
    await eventually(async () => (await find(id)).status === 'retrying')
    expect(await broker.cancel(id, LONG)).toBe('cancelled')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [
        { fencingToken: 1, state: 'DONE_ERROR', code: 'busy' },
        { fencingToken: 0, attempt: 2, reason: 'cancelled' },
      ],
    })
  })

  it('that runs is told, whichever pool has it, and is not tried again', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, broker } = await openStage(open, { handle, concurrency: 1 })
    await start()
    await start()
    const ids = [await enqueue(long, {}), await enqueue(long, {})]
    await holds(2)
    for (const id of ids) expect(await broker.cancel(id, LONG)).toBe('cancelling')
    for (const id of ids) {
      expect(await settled(id)).toMatchObject({
        status: 'cancelled',
        fencingToken: 1,
        attempts: [{ fencingToken: 1, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
      })
      expect(await broker.cancel(id, LONG)).toBe('already_ended')
    }
  })

  it('that runs and is short can not be stopped, and goes on', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, settled, broker } = await openStage(open, { handle })
    await start()
    const id = await enqueue(short, { n: 3 })
    await holds(1)
    expect(await broker.cancel(id, { stoppable: false })).toBe('not_cancellable')
    letGo()
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 3 } })
  })

  it('whose process dies before it hears of it ends as cancelled when it is found, and is not started again', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, broker, backend, events } = await openStage(open, { handle, locks: 'quick' })
    const id = await enqueue(long, {})
    await start('gone')
    await holds(1)
    await backend.kill('gone', [id])
    expect(await broker.cancel(id, LONG)).toBe('cancelling')
    await start('other')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      fencingToken: expect.toSatisfy((starts) => starts <= 2),
    })
    expect(events.filter((event) => event.event === 'attempt.ended' && event.verdict === 'completed')).toEqual([])
  })

  it('that nobody knows is not found', async () => {
    const { broker, made } = await openStage(open)
    expect(await broker.cancel(made(long, {}).id, LONG)).toBe('not_found')
  })
}
