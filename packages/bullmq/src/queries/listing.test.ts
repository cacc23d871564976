// Tasks with a BullMQ priority, which only a team's own Queue adds, are waiting tasks like all others.
import { expect, it } from 'vitest'
import { setup, short } from '../setup.fixture.ts'

it('a prioritized task is counted and listed as waiting, after those in the waiting list', async () => {
  const { broker, enqueue } = await setup()
  const [queue] = broker.boardQueues.filter(({ name }) => name === 'rig')
  const waiting = [await enqueue(short), await enqueue(short)]
  await queue?.add('rig.short', {}, { jobId: 'rig-prioritized', priority: 5 })
  expect((await broker.counts('rig')).waiting).toBe(3)
  const query = { queue: 'rig', status: 'waiting', limit: 2 } as const
  const first = await broker.list({ ...query, cursor: undefined })
  expect(first.tasks.map(({ id }) => id)).toEqual(waiting)
  const second = await broker.list({ ...query, cursor: first.next })
  expect(second.tasks.map(({ id, status }) => ({ id, status }))).toEqual([{ id: 'rig-prioritized', status: 'waiting' }])
  expect(second.next).toBeUndefined()
  const whole = await broker.list({ ...query, limit: 10, cursor: undefined })
  expect(whole.tasks.map(({ id }) => id)).toEqual([...waiting, 'rig-prioritized'])
  expect(whole.next).toBeUndefined()
})
