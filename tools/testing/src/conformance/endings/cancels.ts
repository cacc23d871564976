// Tests that every broker cancels a task by its id, in every status.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, QUEUE, short } from '../setup.ts'

const LONG = { stoppable: true, by: 'alice' }

export function cancels(open: OpenBackend): void {
  it('a waiting or scheduled task is cancelled at once, never runs, and is listed as cancelled', async () => {
    const { enqueue, start, settled, broker, events } = await openSetup(open)
    const [waits, later, other] = [
      await enqueue(long, {}),
      await enqueue(short, {}, { delay: '1h' }),
      await enqueue(long, { n: 7 }),
    ]
    expect(await broker.cancel(waits, LONG)).toBe('cancelled')
    expect(await broker.cancel(later, { stoppable: false, by: 'alice' })).toBe('cancelled')
    for (const id of [waits, later]) {
      expect(await settled(id)).toMatchObject({
        status: 'cancelled',
        fencingToken: 0,
        attempts: [
          { fencingToken: 0, counted: false, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', by: 'alice' },
        ],
      })
    }
    await start()
    expect((await settled(other))?.output).toEqual({ n: 7 })
    expect(events.filter(({ event }) => event === 'attempt.started')).toHaveLength(1)
    expect(await broker.cancel(waits, LONG)).toBe('already_ended')
    const { tasks } = await broker.list({ queue: QUEUE, status: 'cancelled', limit: 10, cursor: undefined })
    expect(tasks.map(({ id }) => id).toSorted()).toEqual([waits, later].toSorted())
  })

  it('a retrying task is cancelled at once, and keeps the records of its attempts', async () => {
    const { enqueue, start, find, settled, broker } = await openSetup(open, {
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

  it('a running long task is signalled in whichever pool runs it, and is not retried', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, broker } = await openSetup(open, { handle, concurrency: 1 })
    await start()
    await start()
    const ids = [await enqueue(long, {}), await enqueue(long, {})]
    await holds(2)
    for (const id of ids) expect(await broker.cancel(id, LONG)).toBe('cancelling')
    for (const id of ids) {
      expect(await settled(id)).toMatchObject({
        status: 'cancelled',
        fencingToken: 1,
        attempts: [
          { fencingToken: 1, counted: true, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', by: 'alice' },
        ],
      })
      expect(await broker.cancel(id, LONG)).toBe('already_ended')
    }
  })

  it('a running short task cannot be cancelled, and runs on', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, settled, broker } = await openSetup(open, { handle })
    await start()
    const id = await enqueue(short, { n: 3 })
    await holds(1)
    expect(await broker.cancel(id, { stoppable: false })).toBe('not_cancellable')
    release()
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 3 } })
  })

  it('a running task whose worker dies before the cancel arrives is cancelled when it is recovered, and not started again', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, broker, backend, events } = await openSetup(open, { handle, locks: 'quick' })
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

  it('an unknown task is not found', async () => {
    const { broker, create } = await openSetup(open)
    expect(await broker.cancel(create(long, {}).id, LONG)).toBe('not_found')
  })
}
