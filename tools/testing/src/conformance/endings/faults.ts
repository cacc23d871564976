// Tests that every broker handles lost locks and dead workers.

import type { TaskEvent } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, openSetup, QUEUE, short } from '../setup.ts'

/** Returns the record that is written by the process that finds a lost attempt. */
const lostAttempt = (fencingToken: number) => ({
  fencingToken,
  attempt: 1,
  counted: false,
  state: 'RECOVER_ERR',
  reason: 'process_lost',
})
type EndEvent = TaskEvent & { readonly event: 'attempt.ended' | 'attempt.commit_refused' }
const isEnd = (event: TaskEvent): event is EndEvent =>
  event.event === 'attempt.ended' || event.event === 'attempt.commit_refused'

export function faults(open: OpenBackend): void {
  it('an attempt that loses its lock is signalled and recorded as lost; the next attempt decides', async () => {
    const { handle, holds } = gate()
    const reasons: unknown[] = []
    const { enqueue, start, settled, backend, events } = await openSetup(open, {
      handle: (context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason.message))
        return context.fencingToken === 1 ? handle(context) : { n: context.fencingToken }
      },
      locks: 'quick',
    })
    const id = await enqueue(long, {})
    await start()
    await holds(1)
    await backend.loseLock(id)
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      output: { n: 2 },
      fencingToken: 2,
      attempts: [lostAttempt(1), { fencingToken: 2, state: 'DONE_SUCCESS' }],
    })
    // The next attempt may end before the first one is signalled.
    const ends = await eventually(() => {
      const found = events.filter(isEnd)
      return found.length === 2 && found.sort((one, other) => one.fencingToken - other.fencingToken)
    })
    expect(reasons).toEqual([expect.stringContaining('lost the lock')])
    expect(ends).toMatchObject([
      { event: 'attempt.commit_refused', fencingToken: 1, refusal: 'lock_lost', verdict: undefined },
      { event: 'attempt.ended', fencingToken: 2, verdict: 'completed' },
    ])
  })

  it('the late output of a short attempt that lost its lock is dropped', async () => {
    const over = Promise.withResolvers<void>()
    const { enqueue, start, settled, find, backend, events } = await openSetup(open, {
      handle: async ({ fencingToken: number }) => {
        if (number === 1) await over.promise
        return { n: number }
      },
      locks: 'quick',
    })
    const id = await enqueue(short, {})
    const pool = await start()
    await eventually(async () => (await find(id)).status === 'active')
    await backend.loseLock(id)
    expect(await settled(id)).toMatchObject({ output: { n: 2 } })
    over.resolve()
    await eventually(() => pool.busy() === 0)
    const ends = await eventually(() => {
      const found = events.filter(isEnd)
      return found.length === 2 && found
    })
    expect(ends).toMatchObject([
      { event: 'attempt.ended', fencingToken: 2, verdict: 'completed' },
      { event: 'attempt.commit_refused', fencingToken: 1, verdict: 'completed' },
    ])
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      output: { n: 2 },
      attempts: [lostAttempt(1), { fencingToken: 2, state: 'DONE_SUCCESS' }],
    })
  })

  it('the tasks of a dead worker are run by another one, with the next fencing token', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, backend, broker } = await openSetup(open, {
      handle: (context) => (context.fencingToken === 1 ? handle(context) : context.input),
      locks: 'quick',
    })
    const id = await enqueue(long, {})
    await start('test:1')
    await holds(1)
    await backend.kill('test:1', [id])
    await start('test:2')
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
      attempts: [
        { ...lostAttempt(1), worker: 'test:1' },
        { fencingToken: 2, attempt: 1, worker: 'test:2', state: 'DONE_SUCCESS' },
      ],
    })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1, recovered: 1, ended: 1 })
  })
}
