// Opens a broker on which tests create groups and add members.
import { randomBytes } from 'node:crypto'
import type { GroupId, MemberEnd } from '@bullpen/contract'
import { createGroupId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { type Group, newGroup, planFollowUps } from '@bullpen/engine/internal'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, unlucky } from '../setup.ts'

export const NO_ENDS: Readonly<Record<MemberEnd, number>> = {
  completed: 0,
  dead: 0,
  cancelled: 0,
  expired: 0,
  removed: 0,
}

/** Opens a setup whose handler dies with the input 13, and otherwise returns its input. */
export async function openGroups(open: OpenBackend, options: Parameters<typeof openSetup>[1] = {}) {
  const setup = await openSetup(open, { locks: 'quick', handle: unlucky, ...options })
  const { groups } = setup.broker
  const create = async (settings: Parameters<typeof newGroup>[1] = {}): Promise<GroupId> => {
    const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    const followUps = planFollowUps(settings, { catalogue: setup.catalogue, correlationId: 'c-1' })
    await groups.create(newGroup(id, settings, 'ann', followUps))
    return id
  }
  let requests = 0
  const add = (id: GroupId, tasks: readonly NewTask[], { seal = false, key = `r${requests++}`, digest = '' } = {}) =>
    groups.add(id, { key, digest, tasks, seal })
  return {
    ...setup,
    groups,
    createGroup: create,
    add,
    /** Creates a sealed group with these members. */
    async groupOf(tasks: readonly NewTask[], settings: Parameters<typeof newGroup>[1] = {}) {
      const id = await create(settings)
      const { ids } = await add(id, tasks, { seal: true })
      return { id, ids }
    },
    longs: (...numbers: readonly number[]) => numbers.map((n) => setup.create(long, { n })),
    async ended(id: GroupId): Promise<Group> {
      const group = await groups.waitUntilEnded(id, AbortSignal.timeout(120_000))
      if (group?.state !== 'ended') throw new Error(`group ${id} has not ended: ${JSON.stringify(group)}`)
      return group
    },
  }
}
