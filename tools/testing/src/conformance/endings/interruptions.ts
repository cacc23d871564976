// Tests what happens to tasks whose worker stops while they run, depending on their definition and however often they are
// interrupted.

import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { fragile, gate, type Handle, long, openSetup } from '../setup.ts'

/** The number of deploys that interrupt one task. */
const REQUEUES = 50

export function interruptions(open: OpenBackend): void {
  it.each([
    ['drain', 'TERMINATED_CTX_CLOSED'],
    ['parent_closed', 'TERMINATED_CTX_CLOSED'],
    ['slot_stopped', 'TERMINATED_STOP_SIGNAL'],
  ] as const)(
    'with onInterrupt: fail, a task that %s interrupts is dead, with a record, and is not started again',
    async (reason, state) => {
      const { handle, holds, entered } = gate()
      const parent = new AbortController()
      const setup = await openSetup(open, { handle, parent: parent.signal, concurrency: 1 })
      const { enqueue, start, settled, find, drain } = setup
      const [id, behind] = [await enqueue(fragile, {}), await enqueue(fragile, {})]
      const pool = await start()
      await holds(1)
      if (reason === 'slot_stopped') pool.stopSlot(1, 'hard')
      else if (reason === 'parent_closed') parent.abort()
      else await drain({ drainMs: 0 })
      expect(await settled(id)).toMatchObject({
        status: 'dead',
        fencingToken: 1,
        attemptsMade: 1,
        attempts: [{ state, reason, fencingToken: 1, counted: true, worker: 'test:1' }],
      })
      // A task that has not started is not interrupted.
      expect(await find(behind)).toMatchObject({ status: 'waiting', fencingToken: 0, attemptsMade: 0, attempts: [] })
      expect(entered).toEqual([id])
    },
  )

  it('output within the grace period counts, also with onInterrupt: fail', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, drain } = await openSetup(open, {
      handle: (context) => Promise.resolve(handle(context)).catch(() => ({ n: 8 })),
    })
    const id = await enqueue(fragile, {})
    await start()
    await holds(1)
    await drain({ drainMs: 0 })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 8 } })
  })

  it('a task that loses its lock is left to its next owner, also with onInterrupt: fail', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, backend } = await openSetup(open, {
      handle: (context) => (context.fencingToken === 1 ? handle(context) : { n: context.fencingToken }),
      locks: 'quick',
    })
    const id = await enqueue(fragile, {})
    await start()
    await holds(1)
    await backend.loseLock(id)
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 } })
  })

  it(`${REQUEUES} drains use up no attempt and count no death`, async () => {
    const { handle, entered } = gate()
    const waitAtFirst: Handle = (context) =>
      entered.length <= REQUEUES ? handle(context) : { n: context.fencingToken }
    const { enqueue, start, settled, find, backend } = await openSetup(open, { handle: waitAtFirst, locks: 'quick' })
    const id = await enqueue(long, {}, { timeout: 'none' })
    for (let n = 1; n <= REQUEUES; n++) {
      const pool = await start(`test:${n}`)
      await eventually(() => entered.length === n)
      await pool.drain({ drainMs: 0, graceMs: 1_000 })
    }
    // A pool that drains may fetch the task once more, and then releases it.
    const { fencingToken, ...requeued } = await find(id)
    expect(requeued).toMatchObject({ status: 'waiting', attemptsMade: 0 })
    expect(fencingToken).toBeGreaterThanOrEqual(REQUEUES)
    expect((await backend.deaths?.(id)) ?? 0).toBe(0)
    await start('test:dies')
    await eventually(() => entered.length === REQUEUES + 1)
    await backend.kill('test:dies', [id])
    await start('test:last')
    expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 1 })
    expect(entered).toHaveLength(REQUEUES + 1)
  })
}
