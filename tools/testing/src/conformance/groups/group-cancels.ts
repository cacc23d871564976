// Tests on every broker what cancels a group's members: a request, the first error, and the group's total timeout.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, gate, long, QUEUE, short } from '../setup.ts'
import { NO_ENDS, openGroups } from './groups-setup.ts'

export function groupCancels(open: OpenBackend): void {
  it('the first error cancels members that wait or run, in every queue, but not a short one that runs', async () => {
    const hold = gate()
    const { create, groupOf, start, ended, find } = await openGroups(open, {
      async handle(context) {
        if ((context.name as string) === short.name) {
          await eventually(() => hold.entered.length > 0)
          return context.input
        }
        if (context.input.n !== 13) return hold.handle(context)
        await hold.holds(1)
        throw new TaskError('unlucky', 'thirteen', { retryable: false })
      },
      concurrency: 3,
    })
    const tasks = [
      create(short, { n: 1 }),
      create(long, { n: 2 }),
      create(long, { n: 13 }),
      create(long, { n: 3 }, { delay: '1h' }),
      create(after, { n: 4 }),
    ]
    await start()
    const { id, ids } = await groupOf(tasks, { onError: 'cancel' })
    const group = await ended(id)
    expect(group).toMatchObject({
      ended: { result: 'failed' },
      ends: { ...NO_ENDS, completed: 1, dead: 1, cancelled: 3 },
      cancelled: { reason: 'first_error' },
      queues: [QUEUE, AFTER],
    })
    const statuses = await Promise.all(ids.map(async (each) => (await find(each)).status))
    expect(statuses).toEqual(['completed', 'cancelled', 'dead', 'cancelled', 'cancelled'])
  })

  it('a cancel ends all members of the group, and no other task', async () => {
    const hold = gate()
    const {
      create,
      longs,
      groupOf,
      createGroup,
      add,
      start,
      enqueue,
      groups: all,
      ended,
      reaches,
    } = await openGroups(open, { handle: hold.handle, concurrency: 2 })
    await start()
    const { id } = await groupOf([...longs(1, 2, 3), create(after, { n: 4 })])
    await hold.holds(2)
    const other = await createGroup()
    const [waiting] = (await add(other, longs(5))).ids
    const single = await enqueue(long, { n: 6 })
    expect(await all.cancel(id, 'ann')).toMatchObject({ cancelled: { reason: 'cancelled', by: 'ann' } })
    expect(await ended(id)).toMatchObject({ ended: { result: 'cancelled' }, ends: { ...NO_ENDS, cancelled: 4 } })
    hold.open()
    for (const task of [waiting, single]) await reaches(task as never, 'completed')
    const again = await all.cancel(id, 'bob')
    expect(again.cancelled?.by).toBe('ann')
  })

  it('a group that is cancelled while its members are being enqueued starts none of the others', async () => {
    const started: number[] = []
    const {
      create,
      createGroup,
      add,
      start,
      groups: all,
      ended,
    } = await openGroups(open, {
      handle({ input }) {
        started.push(input.n)
        return input
      },
      concurrency: 1,
    })
    const id = await createGroup()
    await add(
      id,
      Array.from({ length: 300 }, (_, n) => create(long, { n: n + 100 })),
    )
    await all.cancel(id, 'ann')
    await start()
    expect(await ended(id)).toMatchObject({ ended: { result: 'cancelled' }, ends: { ...NO_ENDS, cancelled: 300 } })
    expect(started).toEqual([])
  })

  it('a group whose total timeout passes is sealed, and its members are cancelled', async () => {
    const { create, createGroup, add, ended } = await openGroups(open)
    const id = await createGroup({ totalTimeout: '3s' })
    await add(id, [create(long, {}), create(after, {})])
    expect(await ended(id)).toMatchObject({
      ended: { result: 'failed' },
      ends: { ...NO_ENDS, cancelled: 2 },
      cancelled: { reason: 'group_timeout' },
    })
  })
}
