// Tests on every broker how members are added to a group, and what their results are.
import { randomBytes } from 'node:crypto'
import { createGroupId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, long, QUEUE } from '../setup.ts'
import { openGroups } from './groups-setup.ts'

export function groupMembers(open: OpenBackend): void {
  it('the results are in the order of the members, page by page, also while the group runs', async () => {
    const { create, createGroup, add, longs, start, groups: all, ended } = await openGroups(open)
    await start()
    const id = await createGroup()
    await add(id, [...longs(1, 13), create(after, { n: 3 }), ...longs(4)])
    await eventually(async () => {
      const group = await all.find(id)
      return group?.ends.completed === 2 && group.ends.dead === 1
    })
    await eventually(async () => (await all.members(id, 2, 1)).members[0]?.record !== undefined)
    const { group, members } = await all.members(id, 0, 3)
    expect(group.count).toBe(4)
    expect(members.map(({ member, status, record }) => [member, status, record?.output, record?.queue])).toEqual([
      [0, 'completed', { n: 1 }, QUEUE],
      [1, 'dead', undefined, QUEUE],
      [2, 'waiting', undefined, AFTER],
    ])
    expect((await all.members(id, 3, 3)).members).toMatchObject([{ member: 3, status: 'completed' }])
    expect((await all.members(id, 4, 3)).members).toEqual([])
    await all.cancel(id, 'ann')
    await ended(id)
    expect((await all.members(id, 2, 1)).members).toMatchObject([{ status: 'cancelled' }])
  })

  it('the results show how a member ended after its task was removed', async () => {
    const {
      groupOf,
      longs,
      start,
      ended,
      groups: all,
    } = await openGroups(open, {
      retention: { completed: { count: 0 } },
    })
    await start()
    const { id } = await groupOf(longs(1, 2))
    expect(await ended(id)).toMatchObject({ ends: { completed: 2 } })
    const { members } = await all.members(id, 0, 10)
    expect(members.map(({ status }) => status)).toEqual(['completed', 'completed'])
  })

  it('a repeated request adds nothing, also when the group has ended, and a different one with its key is refused', async () => {
    const { createGroup, add, longs, start, groups: all, ended } = await openGroups(open)
    await start()
    const id = await createGroup()
    const request = { key: 'k', digest: 'd', seal: true }
    const first = await add(id, longs(1, 2), request)
    expect(first.isNew).toBe(true)
    expect(await add(id, longs(1, 2), request)).toEqual({ ...first, isNew: false })
    await ended(id)
    expect(await add(id, longs(1, 2), request)).toEqual({ ...first, isNew: false })
    await expect(add(id, longs(1), { ...request, digest: 'e' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
    expect((await all.find(id))?.count).toBe(2)
  })

  it('a sealed, a cancelled and an ended group accept no members', async () => {
    const { createGroup, add, longs, groups: all } = await openGroups(open)
    const [sealed, cancelled, ended] = [await createGroup(), await createGroup(), await createGroup()]
    await add(sealed, longs(1), { seal: true })
    await add(cancelled, longs(1))
    await all.cancel(cancelled, 'ann')
    await all.seal(ended)
    await expect(add(sealed, longs(1))).rejects.toMatchObject({ code: 'group_sealed' })
    await expect(add(cancelled, longs(1))).rejects.toMatchObject({
      code: expect.stringMatching(/group_(sealed|ended)/),
    })
    await expect(add(ended, longs(1))).rejects.toMatchObject({ code: 'group_ended' })
  })

  it('members that do not fit into their queue are refused together, and none is stored', async () => {
    const { create, createGroup, add, groups: all, find } = await openGroups(open)
    const id = await createGroup()
    const limited = (n: number) => ({ ...create(long, { n }), limits: { maxTasks: 2 } })
    const [other] = (await add(await createGroup(), [limited(0)])).ids
    await eventually(async () => (await find(other as never).catch(() => undefined)) !== undefined)
    await expect(add(id, [limited(1), limited(2)])).rejects.toMatchObject({ code: 'queue_full' })
    expect(await all.find(id)).toMatchObject({ count: 0, queues: [] })
    expect((await add(id, [limited(1)])).start).toBe(0)
  })

  it('first members that do not fit into their queue are refused before their group exists', async () => {
    const { create, createGroup, add, groups: all, find } = await openGroups(open)
    const limited = (n: number) => ({ ...create(long, { n }), limits: { maxTasks: 1 } })
    const [other] = (await add(await createGroup(), [limited(0)])).ids
    await eventually(async () => (await find(other as never).catch(() => undefined)) !== undefined)
    const missing = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    await expect(all.admit(missing, [limited(1)])).rejects.toMatchObject({ code: 'queue_full' })
    await all.admit(missing, [create(long, { n: 1 })])
    expect(await all.find(missing)).toBeUndefined()
    // The members of a group that exists may have been stored by the same request.
    await all.admit(await createGroup(), [limited(1)])
  })

  it.each([
    ['maxTasks', { limits: { maxTasks: 2 } }],
    ['maxBytes', { limits: { maxBytes: 1_600 } }],
    ['maxUnfinishedTasks', { limits: { perApiKey: { maxUnfinishedTasks: 2 } }, apiKeyName: 'shop' }],
  ] as const)('members that would not even fit into an empty queue are too many for its %s', async (limit, fields) => {
    const { create, createGroup, add, groups: all } = await openGroups(open)
    const id = await createGroup()
    const tasks = [1, 2, 3].map((n) => ({ ...create(long, { n }), ...fields }))
    await expect(add(id, tasks)).rejects.toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining(limit),
    })
    expect(await all.find(id)).toMatchObject({ count: 0, queues: [] })
  })

  it('a repeated request gets the same members although they have filled their queue', async () => {
    const { create, createGroup, add, find } = await openGroups(open)
    const id = await createGroup()
    const tasks = [1, 2].map((n) => ({ ...create(long, { n }), limits: { maxTasks: 2 } }))
    const request = { key: 'k', digest: 'd' }
    const first = await add(id, tasks, request)
    await eventually(async () => (await find(first.ids[1] as never).catch(() => undefined)) !== undefined)
    expect(await add(id, tasks, request)).toEqual({ ...first, isNew: false })
    await expect(add(id, tasks, { ...request, digest: 'e' })).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    await expect(add(id, tasks, { key: 'l' })).rejects.toMatchObject({ code: 'queue_full' })
  })

  it('a handler knows the group and the number of its member, and other tasks have no group', async () => {
    const seen: unknown[] = []
    const { groupOf, longs, start, ended, enqueue, settled } = await openGroups(open, {
      handle: ({ group, input }) => {
        seen.push(group)
        return input
      },
      concurrency: 1,
    })
    await start()
    const { id } = await groupOf(longs(5, 6))
    await ended(id)
    await settled(await enqueue(long, {}))
    expect(seen).toEqual([{ id, member: 0 }, { id, member: 1 }, undefined])
  })
}
