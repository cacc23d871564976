// Tests on every broker that a pool for one group runs all its members and no other task.
import { type GroupId, TaskError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { createOnlineGroup } from '@bullpen/engine/internal'
import { sha256, systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { gate, long, QUEUE, type SetupOptions } from '../setup.ts'
import { openGroups } from './groups-setup.ts'

async function openOnline(open: OpenBackend, options: SetupOptions = {}) {
  const setup = await openGroups(open, options)
  return {
    ...setup,
    /** Starts a pool that runs only this group. `done` resolves with the state in which the pool ends. */
    async online(id: GroupId, worker = 'online:1') {
      const { groups } = setup
      const group = createOnlineGroup({ id, groups, queues: [QUEUE], clock: systemClock, sha256 })
      await group.open(new AbortController().signal)
      const pool = setup.pool(worker, group.candidates(QUEUE))
      return { group, pool, done: pool.onlineGroup(group) }
    },
    statuses: async (tasks: readonly { readonly id: NewTask['id'] }[]) =>
      Promise.all(tasks.map(async ({ id }) => (await setup.find(id)).status)),
    /** Enqueues tasks that are not members of any group. */
    others: async (count: number) => {
      const tasks = Array.from({ length: count }, () => setup.create(long, { n: 0 }))
      for (const task of tasks) await setup.enqueueTask(task)
      return tasks
    },
  }
}

export function onlineGroups(open: OpenBackend): void {
  it('a pool for a group runs members of every kind, and leaves all other tasks to other pools', async () => {
    const { create, others, groupOf, longs, online, ended, statuses, start, settled, find } = await openOnline(open, {
      handle({ input, attempt }) {
        if (input.n === 7 && attempt === 1) throw new TaskError('again', 'fails once')
        return input
      },
    })
    const older = await others(3)
    const { id, ids } = await groupOf([
      ...longs(1, 2, 7),
      create(long, { n: 4 }, { priority: 9 }),
      create(long, { n: 5 }, { priority: 2 }),
      create(long, { n: 6 }, { delay: '100ms' }),
    ])
    const younger = await others(3)
    const { done } = await online(id)
    expect(await done).toBe('ONLINE_DONE')
    expect((await ended(id)).ends.completed).toBe(6)
    expect((await find(ids[2] as never)).attemptsMade).toBe(2)
    expect(await statuses([...older, ...younger])).toEqual(Array(6).fill('waiting'))
    await start('test:2')
    for (const other of [...older, ...younger]) {
      expect(await settled(other.id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    }
  })

  it('the tasks of other pools run beside a pool whose group has no task that waits', async () => {
    const { create, groupOf, online, start, settled, enqueue } = await openOnline(open)
    const { id } = await groupOf([create(long, { n: 1 }, { delay: '1h' })])
    const { pool } = await online(id)
    await start('test:2')
    for (let n = 0; n < 10; n++) {
      const task = await enqueue(long, { n })
      expect((await settled(task))?.status).toBe('completed')
    }
    expect(pool.state()).toBe('ONLINE_RUNNING')
  })

  it('a pool for an open group runs members that are added later, and ends when the group is sealed', async () => {
    const { createGroup, add, longs, online, settled, groups } = await openOnline(open)
    const id = await createGroup()
    const { pool, done } = await online(id)
    for (const n of [1, 2]) {
      const { ids } = await add(id, longs(n))
      const record = await eventually(() => settled(ids[0] as never))
      expect(record.status).toBe('completed')
    }
    expect(pool.state()).toBe('ONLINE_RUNNING')
    await eventually(async () => (await groups.find(id))?.ends.completed === 2)
    await groups.seal(id)
    expect(await done).toBe('ONLINE_DONE')
  })

  it('several pools for one group start each of its members once', async () => {
    const { groupOf, longs, online, find } = await openOnline(open, { concurrency: 3 })
    const { id, ids } = await groupOf(longs(...Array.from({ length: 60 }, (_, n) => n + 20)))
    const pools = [await online(id), await online(id, 'online:2')]
    expect(await Promise.all(pools.map(({ done }) => done))).toEqual(['ONLINE_DONE', 'ONLINE_DONE'])
    for (const member of ids) expect(await find(member)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })

  it('a pool for a group that has already ended is done at once', async () => {
    const { createGroup, groups, online, others, statuses } = await openOnline(open)
    const other = await others(1)
    const id = await createGroup()
    await groups.seal(id)
    expect(await (await online(id)).done).toBe('ONLINE_DONE')
    expect(await statuses(other)).toEqual(['waiting'])
  })

  it('a drained pool for a group requeues its members, which another pool for the group runs', async () => {
    const { handle, holds, open: release, entered } = gate()
    const { groupOf, longs, online, drain, find } = await openOnline(open, { handle, concurrency: 1 })
    const { id, ids } = await groupOf(longs(1, 2))
    const { done } = await online(id)
    await holds(1)
    await drain({ drainMs: 10 })
    expect(await done).toBe('INCOMPLETE_DONE')
    expect(await find(ids[0] as never)).toMatchObject({ status: 'waiting', attemptsMade: 0 })
    release()
    expect(await (await online(id, 'online:2')).done).toBe('ONLINE_DONE')
    expect(entered).toEqual([ids[0], ...ids])
  })

  it('the members of a pool for a group that is killed run in any other pool', async () => {
    const { handle, holds, open: release } = gate()
    const { groupOf, longs, online, backend, start, ended } = await openOnline(open, { handle })
    const { id, ids } = await groupOf(longs(1, 2))
    await online(id, 'online:dead')
    await holds(2)
    await backend.kill('online:dead', ids)
    release()
    await start('test:2')
    expect(await ended(id)).toMatchObject({ ends: { completed: 2 } })
  })

  it('a pool for a group that is cancelled starts no more members, and is done when the running ones have ended', async () => {
    const { handle, holds, entered } = gate()
    const { groupOf, longs, online, groups, ended } = await openOnline(open, { handle, concurrency: 1 })
    const { id, ids } = await groupOf(longs(1, 2, 3))
    const { done } = await online(id)
    await holds(1)
    await groups.cancel(id, 'ann')
    expect(await done).toBe('ONLINE_DONE')
    expect((await ended(id)).ends.cancelled).toBe(3)
    expect(entered).toEqual([ids[0]])
  })

  it('a group that does not exist, or that has members in a queue without a pool, is refused', async () => {
    const { createGroup, add, longs, groups } = await openOnline(open)
    const id = await createGroup()
    await add(id, longs(1))
    const elsewhere = createOnlineGroup({ id, groups, queues: ['elsewhere'], clock: systemClock, sha256 })
    await expect(elsewhere.open(new AbortController().signal)).rejects.toMatchObject({ code: 'queue_not_found' })
    const unknown = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}` as GroupId
    const missing = createOnlineGroup({ id: unknown, groups, queues: [QUEUE], clock: systemClock, sha256 })
    await expect(missing.open(new AbortController().signal)).rejects.toMatchObject({ code: 'group_not_found' })
  })
}
