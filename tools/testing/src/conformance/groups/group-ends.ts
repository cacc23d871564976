// Tests on every broker when groups end, with which result, and which tasks follow.
import { followUp } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, type Context, long, QUEUE, ruled } from '../setup.ts'
import { NO_ENDS, openGroups } from './groups-setup.ts'

export function groupEnds(open: OpenBackend): void {
  it('a group ends when it is sealed and all its members are completed, also if they are added over time', async () => {
    const { createGroup, add, longs, start, groups: all, ended, find, settled } = await openGroups(open)
    await start()
    const id = await createGroup()
    const first = await add(id, longs(1, 2))
    for (const member of first.ids) expect((await settledOnce(settled, member)).status).toBe('completed')
    const second = await add(id, longs(3))
    expect([first.start, second.start]).toEqual([0, 2])
    const third = (await eventually(() => find(second.ids[0] as never).catch(() => undefined))) as { group?: unknown }
    expect(third.group).toEqual({ id, member: 2 })
    await eventually(async () => (await all.find(id))?.ends.completed === 3)
    expect(await all.find(id)).toMatchObject({ state: 'open', count: 3, queues: [QUEUE], by: 'ann' })
    expect((await all.seal(id)).state).toBe('ended')
    expect(await ended(id)).toMatchObject({
      ended: { result: 'completed' },
      count: 3,
      ends: { ...NO_ENDS, completed: 3 },
      cancelled: undefined,
    })
  })

  it('a sealed group without members ends at once', async () => {
    const { createGroup, groups: all } = await openGroups(open)
    const id = await createGroup()
    expect(await all.seal(id)).toMatchObject({ state: 'ended', ended: { result: 'completed' }, count: 0 })
  })

  it('a member that dies makes the group fail, and the other members continue by default', async () => {
    const { groupOf, longs, start, ended } = await openGroups(open, { concurrency: 1 })
    await start()
    const { id } = await groupOf(longs(1, 13, 2))
    expect(await ended(id)).toMatchObject({
      ended: { result: 'failed' },
      ends: { ...NO_ENDS, completed: 2, dead: 1 },
      cancelled: undefined,
    })
  })

  it.each([
    ['completed', [1, 2], undefined, [1, 3]],
    ['failed', [1, 13], undefined, [2, 3]],
    ['cancelled', [1, 2], 'ann', [3]],
  ] as const)(
    'a group that is %s is followed by the tasks for this result, each once',
    async (result, inputs, by, followed) => {
      const { create, groupOf, start, ended, groups: all, broker } = await openGroups(open)
      const settings = {
        onSuccess: [followUp(after, { n: 1 })],
        onFailure: [followUp(after, { n: 2 })],
        onEnd: [followUp(after, { n: 3 })],
      }
      const delay = by === undefined ? {} : { delay: '1h' as const }
      const tasks = inputs.map((n) => create(long, { n }, delay))
      await start()
      const { id } = await groupOf(tasks, settings)
      if (by !== undefined) await all.cancel(id, by)
      expect((await ended(id)).ended?.result).toBe(result)
      const found = await eventually(async () => {
        const { tasks: waiting } = await broker.list({ queue: AFTER, status: 'waiting', limit: 10, cursor: undefined })
        return waiting.length >= followed.length && waiting
      })
      expect(found.map(({ input }) => (input as { n: number }).n).toSorted()).toEqual(followed)
      for (const each of found) expect(each).toMatchObject({ followUpOf: id, correlationId: 'c-1' })
      await all.seal(id)
      await all.cancel(id, 'bob')
      expect((await broker.totals(AFTER)).accepted).toBe(followed.length)
    },
  )

  it('the handlers of members, of their follow-ups and of the follow-ups of their group know the group', async () => {
    const read = new Map<string, unknown>()
    const { create, groupOf, start, ended } = await openGroups(open, {
      handle({ input, group, followUpOf }: Context) {
        read.set(`${input.n}`, { group, followUpOf })
        return input
      },
    })
    await start()
    const next = { onEnd: [followUp(long, { n: 2 })] }
    const { id, ids } = await groupOf([create(long, { n: 0 }), create(long, { n: 1 }, next)], {
      onSuccess: [followUp(long, { n: 3 })],
    })
    await ended(id)
    await eventually(() => read.size === 4)
    expect(Object.fromEntries(read)).toEqual({
      0: { group: { id, member: 0 }, followUpOf: undefined },
      1: { group: { id, member: 1 }, followUpOf: undefined },
      2: { group: undefined, followUpOf: ids[1] },
      3: { group: { id }, followUpOf: id },
    })
  })

  it('a copy of a dead follow-up in another queue says what the dead one followed', async () => {
    const { create, find, enqueueTask } = await openGroups(open)
    const source = create(long, { n: 1 }).id
    const copy = await enqueueTask({ ...create(long, { n: 1 }, { delay: '1h' }), followUpOf: source })
    expect(await find(copy)).toMatchObject({ followUpOf: source })
  })

  it('a member has the follow-ups of its definition', async () => {
    const { create, groupOf, start, ended, broker } = await openGroups(open)
    await start()
    const { id, ids } = await groupOf([create(ruled, { n: 2, success: 1, failure: 1, end: 1 })])
    await ended(id)
    const found = await eventually(async () => {
      const { tasks } = await broker.list({ queue: AFTER, status: 'waiting', limit: 10, cursor: undefined })
      return tasks.length >= 2 && tasks
    })
    expect(found.map(({ input }) => (input as { n: number }).n).toSorted()).toEqual([140, 320])
    for (const each of found) expect(each.followUpOf).toBe(ids[0])
  })

  it('a dead member that is retried and completes does not change the group', async () => {
    const { groupOf, longs, start, ended, groups: all, broker, settled } = await openGroups(open)
    await start()
    const { id, ids } = await groupOf(longs(13, 1))
    const before = await ended(id)
    const [dead] = ids
    const edit = { input: { n: 4 }, version: 1 }
    await broker.retry(dead as never, { request: 'r', by: 'ann', edit })
    expect((await settled(dead as never))?.status).toBe('completed')
    await eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
    expect(await all.find(id)).toEqual(before)
    const { members } = await all.members(id, 0, 10)
    expect(members.map(({ status }) => status)).toEqual(['dead', 'completed'])
  })
}

/** Waits until a member has been enqueued and has ended. */
async function settledOnce<T>(settled: (id: never) => Promise<T | undefined>, id: string): Promise<T> {
  return (await eventually(() => settled(id as never))) as T
}
