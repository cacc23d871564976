// The leader of a fuzzed world, which works only when an operation says so.
import type { GroupId, RunId } from '@bullpen/contract'
import { groupDeliveries } from '../../groups/group-deliveries.ts'
import { groupOutbox } from '../../groups/group-outbox.ts'
import { groupVisit } from '../../groups/group-visits.ts'
import { groupKeys, groupsKey, queueKeys, runKeys, runsKey } from '../../keys.ts'
import { createHousekeeping } from '../../leader/housekeeping.ts'
import { reportLostWorkers } from '../../leader/lost-workers.ts'
import { visitDue, visitRegistry } from '../../leader/visit-registry.ts'
import { ageClaims } from '../../outbox/age-claims.fixture.ts'
import { followUpDeliveries } from '../../outbox/follow-up-deliveries.ts'
import { createForwarder, type Forwarder, queueOutbox } from '../../outbox/forwarder.ts'
import { createTargetQueues } from '../../outbox/target-queues.ts'
import { runDeliveries } from '../../runs/run-deliveries.ts'
import { runVisit } from '../../runs/run-visits.ts'
import { scheduleRunner } from '../../schedules/schedule-runner.ts'
import { createScheduleStore } from '../../schedules/schedule-store.ts'
import { createTroubleWatch } from '../../schedules/trouble-watch.ts'
import { RETENTION, type World } from '../index-model/world.fixture.ts'

export interface FuzzLeader {
  /** Does what is due in a queue, and for the groups, runs and workers, if the time is this many ms later. */
  visit(queue: string, laterMs: number): Promise<void>
  /** Delivers what is in the outbox of a queue. */
  forward(queue: string): Promise<void>
  /** Makes every claim so old that the next visit takes it over, and every visit due. */
  hurry(queues: readonly string[]): Promise<void>
}

/** `onFault` is called with what must not happen: a duty that fails, a repair, or an entry that is refused. */
export function fuzzLeader(
  { redis, namespace }: Pick<World, 'redis' | 'namespace'>,
  queues: readonly string[],
  onFault: (fault: string) => void,
): FuzzLeader {
  let laterMs = 0
  const now = (): number => Date.now() + laterMs
  const ignore = (): void => {}
  const shared = { redis, namespace, now, process: 'leader' }
  const targets = createTargetQueues(redis, namespace)
  const groups = visitRegistry<GroupId>(redis, groupsKey(namespace))
  const runs = visitRegistry<RunId>(redis, runsKey(namespace))
  const onRefused = ({ error }: { readonly error: unknown }): void => onFault(`an entry was refused: ${error}`)
  const deliveries = runDeliveries({ ...shared, registry: runs, targets, onRefused, onChanged: ignore })
  const ofGroups = { redis, namespace, onEnded: ignore }
  const forwarder: Forwarder = createForwarder({
    deliveries: {
      ...groupDeliveries({
        ...{ ...shared, targets, onEnded: ignore, onRefused },
        forwardGroup: (id) => forwarder.forwardLeft(groupOutbox(ofGroups, id), () => false),
      }),
      task: followUpDeliveries({ targets, now, onForwarded: ignore, onRefused }),
      runTaskEnd: deliveries.runTaskEnd,
    },
    onUnreadable: (entries) => onFault(`${entries} entries cannot be read`),
  })
  const store = createScheduleStore({ redis, namespace, queues, codec: undefined, call: (run) => run() })
  const housekeeping = createHousekeeping({
    ...{ ...shared, forwarder },
    visits: {
      groups: visitDue(groups, now, groupVisit({ ...shared, registry: groups, forwarder, onEnded: ignore })),
      runs: visitDue(runs, now, runVisit({ ...shared, registry: runs, deliveries, onMissing: ignore })),
      workers: reportLostWorkers({ ...shared, onLost: ignore }),
    },
    unattached: { onFound: ignore, onGone: ignore },
    ...{ onExpired: ignore, onCancelled: ignore, onNewFingerprint: ignore },
    onRepaired(queue, entries) {
      if (entries > 0) onFault(`${entries} entries of ${queue} were repaired`)
    },
    runDueSchedules: scheduleRunner({ ...shared, store, onEnqueued: ignore, onCancelled: ignore }),
    watchSchedules: createTroubleWatch({ ...shared, codec: undefined, everyMs: 0, onBegun: ignore, onEnded: ignore }),
    onFailed: ({ duty, error }) => onFault(`${duty} has failed: ${error}`),
  })
  const term = { fencing: 1, isOver: () => false }

  return {
    async visit(queue, later) {
      laterMs = later
      await housekeeping.visit({ name: queue, retention: RETENTION }, term)
      housekeeping.visitDue(term)
      await housekeeping.settled()
      laterMs = 0
    },
    forward: (queue) => forwarder.forwardLeft(queueOutbox(redis, queueKeys(namespace, queue)), () => false),
    async hurry(names) {
      const [ofGroups, ofRuns] = [await groups.ids(), await runs.ids()]
      for (const id of ofGroups) await groups.reschedule(id, 0)
      for (const id of ofRuns) await runs.reschedule(id, 0)
      const outboxes = [
        ...ofGroups.map((id) => groupKeys(namespace, id)),
        ...ofRuns.map((id) => runKeys(namespace, id)),
        ...names.map((name) => queueKeys(namespace, name)),
      ]
      await ageClaims(
        redis,
        outboxes.map(({ outbox }) => outbox),
      )
    },
  }
}
