// Conformance: lost locks and dead processes.

import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, type Handle, long, openStage, short } from './stage.ts'

/** More deaths of its process than these, and a task is dead. */
const DEATHS_AT_MOST = 10

export function faults(open: OpenBackend): void {
  it('signals an attempt whose lock is lost, records nothing of it, and lets another start decide', async () => {
    const { handle, holds } = gate()
    const reasons: unknown[] = []
    const { enqueue, start, settled, backend, events } = await openStage(open, {
      handle: (context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason.message))
        return context.start === 1 ? handle(context) : { n: context.start }
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
      attempts: [{ fencingToken: 2 }],
    })
    // Whoever has it now may be done before the first one is told.
    const ends = await eventually(() => {
      const found = events.filter((event) => event.event === 'attempt.ended')
      return found.length === 2 && found.sort((one, other) => one.fencingToken - other.fencingToken)
    })
    expect(reasons).toEqual([expect.stringContaining('lock_lost')])
    expect(ends).toMatchObject([
      { fencingToken: 1, verdict: 'lost' },
      { fencingToken: 2, verdict: 'completed' },
    ])
  })

  it('drops what a start returns that has lost its lock, and can not be told', async () => {
    const over = Promise.withResolvers<void>()
    const { enqueue, start, settled, find, backend, events } = await openStage(open, {
      handle: async ({ start: number }) => {
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
    const ends = events.filter(({ event }) => event === 'attempt.ended')
    expect(ends).toMatchObject([{ fencingToken: 2 }, { fencingToken: 1, verdict: 'completed' }])
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 }, attempts: [{ fencingToken: 2 }] })
  })

  it('gives the tasks of a process that died to another, and counts the start', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, backend } = await openStage(open, {
      handle: (context) => (context.start === 1 ? handle(context) : context.input),
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
      attempts: [{ fencingToken: 2, attempt: 1, worker: 'test:2' }],
    })
  })

  it('buries a task whose process has died eleven times: process_lost', async () => {
    const starts: number[] = []
    const handle: Handle = ({ start: number }) => {
      starts.push(number)
      return new Promise(() => {})
    }
    const { enqueue, start, settled, find, backend } = await openStage(open, {
      handle,
      concurrency: 20,
      locks: 'quick',
    })
    const id = await enqueue(long, {})
    await start()
    await eventually(() => starts.length === 1)
    await backend.countDeaths?.(id, DEATHS_AT_MOST)
    for (let died = backend.countDeaths === undefined ? 0 : DEATHS_AT_MOST; died <= DEATHS_AT_MOST; died++) {
      const { fencingToken: before } = await find(id)
      await backend.loseLock(id)
      if (died < DEATHS_AT_MOST) await eventually(async () => (await find(id)).fencingToken > before)
    }
    const record = await settled(id)
    const last = starts.at(-1)
    expect(record).toMatchObject({ status: 'dead', fencingToken: last })
    expect(record?.attempts).toMatchObject([
      { state: 'RECOVER_ERR', reason: 'process_lost', fencingToken: last, attempt: 1 },
    ])
  })
}
