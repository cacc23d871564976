// Calls that are made again with the same task id, because the reply to the first call was lost.
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { openSetup, QUEUE, short } from '../setup.ts'

export function repeats(open: OpenBackend): void {
  it.each([
    ['its only caller', 'only', 'created'],
    ['a caller with a token', { token: '1' }, 'created'],
    ['an unknown caller', undefined, 'existing'],
  ] as const)(
    'a repeated call of %s stores nothing, even if the task has ended and was deleted',
    async (_, caller, action) => {
      const { broker, create, start } = await openSetup(open, { retention: { completed: { count: 0 } } })
      const task = { ...create(short, {}), caller }
      expect(await broker.enqueue(task)).toMatchObject({ id: task.id, action: 'created' })
      expect(await broker.enqueue({ ...task, isRepeat: true })).toEqual({ id: task.id, action })
      await start()
      await eventually(async () => (await broker.find(task.id)) === undefined)
      // By now, it may be known when tasks start.
      expect(await broker.enqueue({ ...task, isRepeat: true })).toMatchObject({ id: task.id, action })
      expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1, removed: 1, unaccounted: 0 })
    },
  )

  it('a call with another token is not a repeat, so it stores the task again after the first task was deleted', async () => {
    const { broker, create, start } = await openSetup(open, { retention: { completed: { count: 0 } } })
    const task = { ...create(short, {}), caller: { token: '1' } }
    await broker.enqueue(task)
    await start()
    await eventually(async () => (await broker.find(task.id)) === undefined)
    const other = { ...task, caller: { token: '2' }, isRepeat: true }
    expect(await broker.enqueue(other)).toMatchObject({ id: task.id, action: 'created' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2 })
  })

  it('a task that was deleted long after its enqueue is stored again', async () => {
    const { broker, create, start } = await openSetup(open, { retention: { completed: { count: 0 } } })
    const created = create(short, {})
    const task = { ...created, enqueuedAt: created.enqueuedAt - 60_000, caller: 'only' } as const
    await broker.enqueue(task)
    await start()
    await eventually(async () => (await broker.find(task.id)) === undefined)
    expect(await broker.enqueue({ ...task, isRepeat: true })).toMatchObject({ id: task.id, action: 'created' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2 })
  })
}
