// Callers that wait for tasks while the pool drains: none hangs, and each gets the present state of its task.
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { long, setup } from '../setup.fixture.ts'

describe('callers that wait for drained tasks', () => {
  it('get each task when they stop waiting: requeued, with its attempt record', async () => {
    let started = 0
    const { enqueue, startPool, drain, broker } = await setup({
      concurrency: 1,
      handle: ({ signal }) => {
        started++
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const ids = [await enqueue(long), await enqueue(long), await enqueue(long)]
    const pool = await startPool()
    await eventually(() => started === 1)
    const stopWaiting = new AbortController()
    const group = Promise.all(ids.map((id) => broker.waitUntilFinished(id, stopWaiting.signal)))
    expect(await drain(50, 2_000)).toMatchObject([{ queue: 'rig', abandoned: [] }])
    expect(pool.state()).toBe('SHUTDOWN')
    stopWaiting.abort()
    const records = await group
    expect(records.map((record) => record?.status)).toEqual(['waiting', 'waiting', 'waiting'])
    expect(records.map((record) => record?.attempts.map(({ state, reason }) => [state, reason]))).toEqual([
      [['TERMINATED_CTX_CLOSED', 'drain']],
      [],
      [],
    ])
  })

  it('keep waiting, and get the results when another pool runs the tasks', async () => {
    let open = false
    let started = 0
    const { enqueue, startPool, drain, settled } = await setup({
      concurrency: 2,
      handle: ({ signal, input }) => {
        started++
        if (open) return input
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const ids = [await enqueue(long), await enqueue(long), await enqueue(long)]
    await startPool()
    await eventually(() => started === 2)
    const group = Promise.all(ids.map((id) => settled(id)))
    await drain(0, 2_000)
    open = true
    await startPool()
    for (const record of await group) expect(record).toMatchObject({ status: 'completed', attemptsMade: 1 })
  })
})
