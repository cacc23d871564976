// Lets the leader look at a group: cancels it when its total timeout has passed, and delivers what other processes have left. Every step
// may be repeated, so a former leader does no harm.
import type { GroupId, GroupResult } from '@bullpen/contract'
import { readGroupId } from '@bullpen/contract/internal'
import { FORCED_END_MS } from '@bullpen/engine/internal'
import { groupEndedChannel, groupKeys } from '../keys.ts'
import { VISIT_EVERY_MS, type VisitRegistry } from '../leader/visit-registry.ts'
import type { Forwarder } from '../outbox/forwarder.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { visitGroupScript } from '../store/scripts.ts'
import { groupOutbox } from './group-outbox.ts'

export interface GroupVisitOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly registry: Pick<VisitRegistry<GroupId>, 'register' | 'reschedule' | 'forget'>
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  readonly forwarder: Pick<Forwarder, 'forwardLeft'>
  /** Called for each group that a visit has ended. */
  readonly onEnded: (result: GroupResult) => void
}

/** How long after a change the leader looks at the group, in ms. By then, the process that has changed it is usually done. */
export const VISIT_AFTER_MS = 5_000

/** Returns a function that looks at one group. */
export function groupVisit(options: GroupVisitOptions): (id: GroupId, isOver: () => boolean) => Promise<void> {
  const { redis, namespace, registry, now, forwarder, onEnded } = options
  const channel = groupEndedChannel(namespace)

  return async (id, isOver) => {
    // Postponed first: a request that changes the group during the visit brings the next one forward again.
    await registry.reschedule(id, now() + VISIT_EVERY_MS)
    const keys = groupKeys(namespace, id)
    const found = await runScript(redis, visitGroupScript, keys, { id, channel, forcedEndMs: FORCED_END_MS })
    if (found === null) {
      // The process that creates the group may have registered it just now.
      const createdAt = readGroupId(id)?.createdAt ?? 0
      if (createdAt + VISIT_EVERY_MS < now()) await registry.forget(id)
      return
    }
    const [state, timeoutAt, entries, result] = found
    if (result !== '') onEnded(result)
    if (entries > 0) {
      await forwarder.forwardLeft(groupOutbox({ redis, namespace, onEnded }, id), isOver)
      // Another process may have claimed entries just now.
      await registry.register(id, now() + VISIT_AFTER_MS)
    } else if (state === 'ended') await registry.forget(id)
    else await registry.register(id, Number(timeoutAt))
  }
}
