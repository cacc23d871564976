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

  it('a cancel that comes too late does not end the task when it is retried at once, in whichever pool', async () => {
    const gates = [gate(), gate(), gate()] as const
    const { enqueue, start, settled, reaches, broker } = await openSetup(open, {
      concurrency: 1,
      async handle(context) {
        const { input, fencingToken } = context
        if (fencingToken > 1) return input
        await gates[input.n as 0 | 1 | 2].handle(context)
        if (input.n === 0) throw new TaskError('gone', 'not there', { retryable: false })
        return input
      },
    })
    await start('one')
    await start('two')
    const dies = await enqueue(short, { n: 0 })
    await gates[0].holds(1)
    const other = await enqueue(short, { n: 1 })
    await gates[1].holds(1)
    const blocks = await enqueue(short, { n: 2 })
    // The worker of a short task refuses to stop it, so the task dies in spite of the stored request.
    expect(await broker.cancel(dies, LONG)).toBe('cancelling')
    gates[0].open()
    await reaches(dies, 'dead')
    // The pool whose task has died is busy with the third task, so that the other pool runs the retried one.
    await gates[2].holds(1)
    gates[1].open()
    await settled(other)
    expect(await broker.retry(dies, { request: 'request-1', by: 'ann' })).toBe('done')
    expect(await settled(dies)).toMatchObject({ status: 'completed', fencingToken: 2 })
    gates[2].open()
    await settled(blocks)
  })

  it('an unknown task is not found', async () => {
    const { broker, create } = await openSetup(open)
    expect(await broker.cancel(create(long, {}).id, LONG)).toBe('not_found')
  })
}
