// Conformance: what becomes of tasks whose worker ends under them, by their definition and however often it does.

import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { fragile, gate, type Handle, long, openStage } from './stage.ts'

/** Of one task, by as many deploys. */
const HAND_BACKS = 50

export function interruptions(open: OpenBackend): void {
  it.each([
    ['drain', 'TERMINATED_CTX_CLOSED'],
    ['parent_closed', 'TERMINATED_CTX_CLOSED'],
    ['slot_stopped', 'TERMINATED_STOP_SIGNAL'],
  ] as const)(
    'by %s is dead where its definition says so, with its end, and nobody starts it again',
    async (reason, state) => {
      const { handle, holds, entered } = gate()
      const parent = new AbortController()
      const stage = await openStage(open, { handle, parent: parent.signal, concurrency: 1 })
      const { enqueue, start, settled, find, drain } = stage
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
      // What has not started has nothing to fail for.
      expect(await find(behind)).toMatchObject({ status: 'waiting', fencingToken: 0, attemptsMade: 0, attempts: [] })
      expect(entered).toEqual([id])
    },
  )

  it('counts output within the grace, also of a task that fails otherwise', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, drain } = await openStage(open, {
      handle: (context) => Promise.resolve(handle(context)).catch(() => ({ n: 8 })),
    })
    const id = await enqueue(fragile, {})
    await start()
    await holds(1)
    await drain({ drainMs: 0 })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 8 } })
  })

  it('leaves a task to its next owner whose lock is lost, whatever its definition says', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, backend } = await openStage(open, {
      handle: (context) => (context.start === 1 ? handle(context) : { n: context.start }),
      locks: 'quick',
    })
    const id = await enqueue(fragile, {})
    await start()
    await holds(1)
    await backend.loseLock(id)
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 } })
  })

  it(`by ${HAND_BACKS} drains uses up no attempt and counts no death: after them it survives as many as any`, async () => {
    const { handle, entered } = gate()
    const held: Handle = (context) => (context.start <= HAND_BACKS + 1 ? handle(context) : { n: context.start })
    const { enqueue, start, settled, find, backend } = await openStage(open, { handle: held, locks: 'quick' })
    const id = await enqueue(long, {}, { timeout: 'none' })
    for (let n = 1; n <= HAND_BACKS; n++) {
      const pool = await start(`test:${n}`)
      await eventually(() => entered.length === n)
      await pool.drain({ drainMs: 0, graceMs: 1_000 })
    }
    expect(await find(id)).toMatchObject({ status: 'waiting', fencingToken: HAND_BACKS, attemptsMade: 0 })
    expect((await backend.deaths?.(id)) ?? 0).toBe(0)
    await start('test:dies')
    await eventually(() => entered.length === HAND_BACKS + 1)
    await backend.kill('test:dies', [id])
    await start('test:last')
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: HAND_BACKS + 2, attemptsMade: 1 })
  })
}
