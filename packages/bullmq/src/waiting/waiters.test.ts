// Whoever waits for a task's end while its pool drains: nobody hangs, and all are told how it stands.
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { long, rig } from '../setup.fixture.ts'

describe('goapp 3: a group that waits for drained tasks', () => {
  it('is told of each when it waits no longer: handed back and waiting, with its end, and never lost', async () => {
    let entered = 0
    const { enqueue, startPool, drain, broker } = await rig({
      concurrency: 1,
      handle: ({ signal }) => {
        entered++
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const ids = [await enqueue(long), await enqueue(long), await enqueue(long)]
    const pool = await startPool()
    await eventually(() => entered === 1)
    const patience = new AbortController()
    const group = Promise.all(ids.map((id) => broker.waitUntilFinished(id, patience.signal)))
    expect(await drain(50, 2_000)).toMatchObject([{ queue: 'rig', abandoned: [] }])
    expect(pool.state()).toBe('SHUTDOWN')
    patience.abort()
    const records = await group
    expect(records.map((record) => record?.status)).toEqual(['waiting', 'waiting', 'waiting'])
    expect(records.map((record) => record?.attempts.map(({ state, reason }) => [state, reason]))).toEqual([
      [['TERMINATED_CTX_CLOSED', 'drain']],
      [],
      [],
    ])
  })

  it('goes on waiting, and is told of the ends, when another pool takes over', async () => {
    let open = false
    let entered = 0
    const { enqueue, startPool, drain, settled } = await rig({
      concurrency: 2,
      handle: ({ signal, input }) => {
        entered++
        if (open) return input
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const ids = [await enqueue(long), await enqueue(long), await enqueue(long)]
    await startPool()
    await eventually(() => entered === 2)
    const group = Promise.all(ids.map((id) => settled(id)))
    await drain(0, 2_000)
    open = true
    await startPool()
    for (const record of await group) expect(record).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })
})
