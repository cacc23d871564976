// Who cancelled a task is in its attempt record, wherever the task was.
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { long, setup } from '../setup.fixture.ts'

describe('a cancel by id', () => {
  it('of a waiting task records who asked', async () => {
    const { enqueue, broker } = await setup()
    const id = await enqueue(long)
    expect(await broker.cancel(id, { stoppable: true, by: 'ann smith' })).toBe('cancelled')
    expect(await broker.find(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ reason: 'cancelled', by: 'ann smith' }],
    })
  })

  it('of a running task records who asked', async () => {
    const started = Promise.withResolvers<void>()
    const { enqueue, broker, startPool, settled } = await setup({
      handle: ({ signal }) =>
        new Promise((_, reject) => {
          started.resolve()
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    const id = await enqueue(long)
    await startPool()
    await started.promise
    expect(await broker.cancel(id, { stoppable: true, by: 'ann smith' })).toBe('cancelling')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ fencingToken: 1, reason: 'cancelled', by: 'ann smith' }],
    })
  })

  it('without a name records none', async () => {
    const { enqueue, broker } = await setup()
    const id = await enqueue(long)
    await broker.cancel(id, { stoppable: true })
    const record = await eventually(() => broker.find(id))
    expect(record.attempts).toHaveLength(1)
    expect(record.attempts[0]).not.toHaveProperty('by')
  })
})
