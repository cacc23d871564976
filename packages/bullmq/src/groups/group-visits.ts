// Lets the leader look at the groups and pipeline runs that are due. Every step may be repeated, so a former leader does no harm.
import type { GroupId, GroupResult, RunId } from '@bullpen/contract'
import { readGroupId, readRunId } from '@bullpen/contract/internal'
import { FORCED_END_MS } from '@bullpen/engine/internal'
import { groupEndedChannel, groupKeys } from '../keys.ts'
import type { Forwarder } from '../outbox/forwarder.ts'
import { visitGroupScript } from '../scripts/groups/visit-group.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { groupOutbox } from './group-outbox.ts'
import {
  dueGroups,
  forgetGroup,
  postponeVisit,
  registerGroup,
  VISIT_AFTER_MS,
  VISIT_EVERY_MS,
} from './group-registry.ts'

export interface GroupVisitsOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  readonly forwarder: Pick<Forwarder, 'forwardLeft'>
  /** Called for each group that a visit has ended. */
  readonly onEnded: (result: GroupResult) => void
  readonly visitRun: (id: RunId) => Promise<void>
}

/** How many groups and runs one round looks at. The others follow in the next round. */
const VISITS_PER_ROUND = 100

/** Looks at the groups and runs that are due, one after the other, until `isOver`. Takes one round trip if none is due. */
export type VisitGroups = (isOver: () => boolean) => Promise<void>

export function groupVisits(options: GroupVisitsOptions): VisitGroups {
  const { redis, namespace, now, forwarder, onEnded, visitRun } = options
  const channel = groupEndedChannel(namespace)

  async function visit(id: GroupId, isOver: () => boolean): Promise<void> {
    // Postponed first: a request that changes the group during the visit brings the next one forward again.
    await postponeVisit(redis, namespace, id, now() + VISIT_EVERY_MS)
    const keys = groupKeys(namespace, id)
    const found = await runScript(redis, visitGroupScript, keys, { id, channel, forcedEndMs: FORCED_END_MS })
    if (found === undefined) {
      // The process that creates the group may have registered it just now.
      const createdAt = readGroupId(id)?.createdAt ?? 0
      if (createdAt + VISIT_EVERY_MS < now()) await forgetGroup(redis, namespace, id)
      return
    }
    const { state, timeoutAt, entries, result } = found
    if (result !== undefined) onEnded(result)
    if (entries > 0) {
      await forwarder.forwardLeft(groupOutbox({ redis, namespace, onEnded }, id), isOver)
      // Another process may have claimed entries just now.
      await registerGroup(redis, namespace, id, now() + VISIT_AFTER_MS)
    } else if (state === 'ended') await forgetGroup(redis, namespace, id)
    else await registerGroup(redis, namespace, id, timeoutAt)
  }

  return async (isOver) => {
    for (const id of await dueGroups(redis, namespace, now(), VISITS_PER_ROUND)) {
      if (isOver()) return
      const run = readRunId(id)
      if (run === undefined) await visit(id as GroupId, isOver)
      else await visitRun(run.id)
    }
  }
}
