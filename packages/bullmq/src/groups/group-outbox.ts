// The outbox of a group, as the forwarder sees it.
import type { GroupId, GroupResult } from '@bullpen/contract'
import { groupEndedChannel, groupKeys } from '../keys.ts'
import { type Outbox, PAGE_SIZE } from '../outbox/forwarder.ts'
import { claimGroupEntriesScript } from '../scripts/groups/claim-group-entries.ts'
import { deleteGroupEntriesScript } from '../scripts/groups/delete-group-entries.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface GroupOutboxOptions {
  readonly redis: Commander
  readonly namespace: string
  /** Called for each group that ended when its remaining members were cancelled before they were enqueued. */
  readonly onEnded: (result: GroupResult) => void
}

export function groupOutbox({ redis, namespace, onEnded }: GroupOutboxOptions, id: GroupId): Outbox {
  const keys = groupKeys(namespace, id)
  const channel = groupEndedChannel(namespace)
  return {
    name: keys.outbox,
    async claim({ leftForMs = '', cursor }) {
      const args = { id, channel, limit: PAGE_SIZE, idleMs: leftForMs, cursor }
      const { result, ...page } = await runScript(redis, claimGroupEntriesScript, keys, args)
      if (result === undefined) return page
      onEnded(result)
      // The end of the group may have added entries.
      return { ...page, fresh: PAGE_SIZE }
    },
    remove: (ids) => runScript(redis, deleteGroupEntriesScript, keys, {}, ids),
  }
}
