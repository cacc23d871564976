// The outbox of a group, as the forwarder sees it.
import type { GroupId, GroupResult } from '@bullpen/contract'
import { groupEndedChannel, groupKeys } from '../keys.ts'
import { type Outbox, PAGE_SIZE } from '../outbox/forwarder.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { claimGroupEntriesScript, deleteGroupEntriesScript } from '../store/scripts.ts'

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
      const [fresh, next, entries, result] = await runScript(redis, claimGroupEntriesScript, keys, args)
      if (result === '') return { fresh, cursor: next, entries }
      onEnded(result)
      // The end of the group may have added entries.
      return { fresh: PAGE_SIZE, cursor: next, entries }
    },
    remove: (ids) => runScript(redis, deleteGroupEntriesScript, keys, {}, ids),
  }
}
