// Conformance: how many tasks of a queue have ended, whichever way they end, and however long they are kept.
import { type CallOptions, TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { ANN } from '../dead-tasks/dead-tasks-setup.ts'
import { gate, long, openSetup, QUEUE, short } from '../setup.ts'

export function endedTasks(open: OpenBackend): void {
  it('every end of a task is counted once, and a dead task that is retried ends again', async () => {
    const { handle, holds } = gate()
    const setup = await openSetup(open, {
      retention: { completed: { count: 1 } },
      locks: 'quick',
      handle(context) {
        if (context.input.n === 1) throw new TaskError('gone', '', { retryable: false })
        return context.input.n === 2 ? handle(context) : context.input
      },
    })
    const { broker, enqueue, create, enqueueTask, start, reaches, drain } = setup
    let ended = 0
    /** Waits until as many more tasks as given have ended. */
    const counts = async (more: number): Promise<void> => {
      ended += more
      await eventually(async () => (await broker.totals(QUEUE)).ended >= ended)
      expect((await broker.totals(QUEUE)).ended).toBe(ended)
    }
    const replace = (n: number) => {
      const unique: CallOptions['unique'] = { key: 'k', onConflict: 'replace' }
      return enqueueTask(create(long, { n }, { unique, delay: '1h' }))
    }
    const pool = await start()

    for (let n = 10; n < 13; n++) await enqueue(short, { n })
    await counts(3)
    const [retried, deleted]: [TaskId, TaskId] = [await enqueue(long, { n: 1 }), await enqueue(long, { n: 1 })]
    for (const id of [retried, deleted]) await reaches(id, 'dead')
    await counts(2)
    const running = await enqueue(long, { n: 2 })
    await holds(1)
    await counts(0)
    await broker.cancel(running, { stoppable: true })
    await counts(1)
    await broker.retry(retried, ANN)
    await eventually(async () => (await broker.find(retried))?.fencingToken === 2)
    await counts(1)
    await pool.drain({ drainMs: 0, graceMs: 100 })

    expect(await broker.retry(retried, { ...ANN, request: 'another' })).toBe('done')
    await broker.deleteDead(deleted)
    await counts(0)
    await broker.cancel(retried, { stoppable: true })
    await counts(1)
    const late = create(long, {}, { queueTimeout: '1h' })
    await enqueueTask({ ...late, delayMs: 3_600_000, expiresAt: late.enqueuedAt - 1 })
    await counts(1)
    await replace(3)
    await counts(0)
    await replace(4)
    await counts(1)
    await enqueue(short, {})
    await enqueue(long, {}, { priority: 3 })
    await broker.cancelMany({ queue: QUEUE, before: Date.now() + 1_000, reason: 'cancelled' })
    await counts(3)
    await drain()
    const { accepted, removed, unaccounted } = await broker.totals(QUEUE)
    expect({ accepted, unaccounted }).toEqual({ accepted: 11, unaccounted: 0 })
    expect(removed).toBeGreaterThanOrEqual(2)
  })
}
