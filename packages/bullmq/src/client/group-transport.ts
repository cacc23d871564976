// Carries a client's calls about groups over Redis. The client stores members in its own process, as the API does.
import type { FollowUps, MemberRequest } from '@bullpen/contract'
import {
  cancelGroupSchema,
  type GroupTransport,
  groupId,
  groupSettingsSchema,
  type Try,
} from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import {
  checkMember,
  type EventFeeds,
  groupNotFound,
  groupResults,
  groupView,
  inputJson,
  mapTasks,
  type NewGroup,
  newGroup,
  openGroupStream,
} from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import { afterTime } from './aborts.ts'
import { checkRequest } from './check-request.ts'
import { eventStreamTry } from './event-stream-try.ts'
import type { PlanTask } from './planned-task.ts'

export interface GroupTransportOptions {
  readonly broker: Pick<Broker, 'groups' | 'events'>
  readonly feeds: EventFeeds
  /** The queues that have events. */
  readonly queues: readonly string[]
  readonly plan: PlanTask
  /** Plans the follow-ups of a group. Throws the errors of `planFollowUps`. */
  readonly planFollowUps: (settings: FollowUps) => NewGroup['followUps']
  /** Runs a call once, and converts its errors. */
  readonly once: <T>(run: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>
}

/** Names the creator of a group that does not say who it is. */
const CREATOR = `client:${process.pid}`
const PAGE_SIZE = 200

export function groupTransport(options: GroupTransportOptions): GroupTransport {
  const { broker, feeds, queues, plan, planFollowUps, once } = options
  const { groups } = broker
  const call =
    <T>(run: () => Promise<T>): Try<T> =>
    (signal) =>
      once(run, signal)

  const created = (tasks: readonly MemberRequest[]) =>
    mapTasks(tasks, (task) => {
      checkMember(task)
      return plan(task, undefined).create()
    })

  return {
    create: ({ id, ...request }) =>
      call(async () => {
        checkRequest(groupSettingsSchema, { id, ...request })
        const { by = CREATOR, ...settings } = request
        const { group } = await groups.create(newGroup(groupId(id), settings, by, planFollowUps(settings)))
        return groupView(group)
      }),

    add: (id, { tasks, seal = false }, key) =>
      call(async () => {
        const digests = idempotencyOf({ key, caller: '', request: inputJson({ tasks, seal }), life: 0 })
        const members = { key: digests.key, digest: digests.request, tasks: created(tasks), seal }
        const { start, ids } = await groups.add(groupId(id), members)
        return { start, count: ids.length, ids: [...ids] }
      }),

    seal: (id) => call(async () => groupView(await groups.seal(groupId(id)))),

    cancel: (id, by) =>
      call(async () => {
        checkRequest(cancelGroupSchema, { by })
        return groupView(await groups.cancel(groupId(id), by ?? CREATOR))
      }),

    show: (text, waitMs) => (signal) =>
      once(async () => {
        const id = groupId(text)
        const group =
          waitMs === 0
            ? await groups.find(id)
            : await afterTime(waitMs, signal, (end) => groups.waitUntilEnded(id, end))
        if (group === undefined) throw groupNotFound(id)
        return groupView(group)
      }, signal),

    results: (id, from) => call(async () => groupResults(await groups.members(groupId(id), from, PAGE_SIZE), from)),

    events: (text) =>
      eventStreamTry({
        once,
        open: async (after, signal) => openGroupStream({ feeds, broker }, { id: groupId(text), after, signal, queues }),
      }),
  }
}
