// Tests on every broker how groups are created, found, awaited and listed.
import { randomBytes } from 'node:crypto'
import { BullpenError, followUp } from '@bullpen/contract'
import { createGroupId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newGroup } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { after } from '../setup.ts'
import { openGroups } from './groups-setup.ts'

export function groupRecords(open: OpenBackend): void {
  it('a call for a group that does not exist is refused', async () => {
    const { groups: all, add, longs } = await openGroups(open)
    const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    const missing = { code: 'group_not_found' }
    expect(await all.find(id)).toBeUndefined()
    expect(await all.waitUntilEnded(id, AbortSignal.timeout(120_000))).toBeUndefined()
    await expect(all.seal(id)).rejects.toMatchObject(missing)
    await expect(all.cancel(id, 'ann')).rejects.toMatchObject(missing)
    await expect(all.members(id, 0, 10)).rejects.toMatchObject(missing)
    await expect(add(id, longs(1))).rejects.toBeInstanceOf(BullpenError)
  })

  it('a group with more than 64 KiB of follow-ups is refused, with a pointer to each option that has some', async () => {
    const { createGroup, groups: all } = await openGroups(open)
    const large = followUp(after, { n: 1 }, { meta: { text: 'x'.repeat(256) } })
    const nested = Array.from({ length: 14 }, () => ({ ...large, onEnd: Array.from({ length: 14 }, () => large) }))
    const refused = await createGroup({ onSuccess: [large], onEnd: nested }).catch((error: unknown) => error)
    expect(refused).toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining("/onSuccess, /onEnd: the group's follow-up tasks would take"),
      errors: [{ pointer: '/onSuccess' }, { pointer: '/onEnd' }],
    })
    expect(await all.list(10)).toEqual([])
  })

  it('a wait ends with the current state when its signal aborts', async () => {
    const { createGroup, groups: all } = await openGroups(open)
    const id = await createGroup()
    const controller = new AbortController()
    const waiting = all.waitUntilEnded(id, controller.signal)
    controller.abort()
    expect(await waiting).toMatchObject({ id, state: 'open' })
  })

  it('creating a group twice leaves it unchanged, unless its settings differ, and only unfinished groups are listed', async () => {
    const { createGroup, groups: all } = await openGroups(open)
    const first = await createGroup({ onError: 'cancel' })
    const second = await createGroup()
    const same = newGroup(first, { onError: 'cancel', totalTimeout: '168h' }, 'bob')
    expect(await all.create(same)).toMatchObject({ group: { by: 'ann', onError: 'cancel' }, isNew: false })
    for (const other of [
      {},
      { onError: 'cancel', keep: '2d' },
      { onError: 'cancel', onEnd: [followUp(after, {})] },
    ] as const)
      await expect(all.create(newGroup(first, other, 'ann'))).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(await all.find(first)).toMatchObject({ onError: 'cancel', keepMs: 86_400_000 })
    expect((await all.list(10)).map(({ id }) => id).toSorted()).toEqual([first, second].toSorted())
    expect(await all.list(1)).toHaveLength(1)
    const [older = first, newer] = [first, second].toSorted()
    await all.seal(older)
    expect((await all.list(10)).map(({ id }) => id)).toEqual([newer])
    expect((await all.list(1)).map(({ id }) => id)).toEqual([newer])
  })
}
