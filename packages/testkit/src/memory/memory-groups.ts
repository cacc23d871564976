// Stores groups in memory, and enqueues and cancels their members.
import type { GroupId, MemberEnd, TaskId, TaskRecord } from '@bullpen/contract'
import { decodeLines, type StoredFollowUp } from '@bullpen/contract/internal'
import type { NewTask, PayloadCodec } from '@bullpen/engine'
import {
  addMembers,
  addRefused,
  type CancelRule,
  type Clock,
  cancelGroup,
  createGroup,
  endMember,
  FORCED_END_MS,
  type Group,
  type GroupModel,
  type GroupStep,
  type Groups,
  groupExists,
  groupFollowUpLines,
  groupNotFound,
  groupReleases,
  groupRuleId,
  memberId,
  membersPage,
  type ReleasedFollowUp,
  sealGroup,
  visitGroup,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { guarded } from './outage.ts'
import { Timers } from './store/timers.ts'
import { Waiters } from './waiters.ts'

export interface MemoryGroupsOptions {
  readonly clock: Clock
  /** Throws if the store is unreachable. */
  readonly check: () => void
  /** Resolves when the store is reachable. */
  readonly reachable: () => Promise<void>
  readonly find: (id: TaskId) => TaskRecord | undefined
  /** Checks whether the tasks' queues have room for them. Throws the error with which an enqueue would be refused. */
  readonly admit: (tasks: readonly NewTask[]) => void
  readonly enqueue: (task: NewTask) => void
  readonly cancel: (rule: CancelRule) => void
  /** Enqueues what follows from the end of a group. */
  readonly release: (releases: readonly ReleasedFollowUp[]) => void
  readonly codec: PayloadCodec | undefined
}

export interface MemoryGroups {
  readonly groups: Groups
  /** Reports the end of a member to its group. */
  ended(group: { readonly id: string; readonly member: number }, end: MemberEnd): void
  close(): void
}

export function memoryGroups(options: MemoryGroupsOptions): MemoryGroups {
  const { clock, check, reachable, find, admit, enqueue, cancel, release, codec } = options
  const models = new Map<GroupId, GroupModel>()
  const followUps = new Map<GroupId, readonly StoredFollowUp[]>()
  const settings = new Map<GroupId, string>()
  const waiters = new Waiters<GroupId>()
  /** The callers that also learn of further queues. */
  const watchers = new Map<GroupId, Set<() => void>>()
  const timers = new Timers(clock)

  const modelOf = (id: GroupId): GroupModel => {
    const model = models.get(id)
    if (model === undefined) throw groupNotFound(id)
    return model
  }

  /** Does something a little later, as the forwarder on Redis does. */
  const later = (act: () => void): void => {
    void reachable().then(act)
  }

  const wakeWatchers = (id: GroupId): void => {
    for (const wake of watchers.get(id) ?? []) wake()
  }

  const carryOut = (id: GroupId, { model, effects }: GroupStep): Group => {
    models.set(id, model)
    for (const effect of effects) {
      if (effect.kind === 'cancel') {
        const { by, at } = effect.cancel
        timers.after(FORCED_END_MS, () => visit(id))
        for (const queue of effect.queues) {
          const rule = {
            id: groupRuleId(id, queue),
            queue,
            group: id,
            before: Number.POSITIVE_INFINITY,
            by,
            at,
          } as const
          later(() => cancel({ ...rule, reason: 'cancelled' }))
        }
      } else {
        timers.after(model.group.keepMs, () => models.delete(id))
        const releases = groupReleases(model.group, followUps.get(id) ?? [], effect.result)
        followUps.delete(id)
        later(() => release(releases))
        waiters.wake(id)
        wakeWatchers(id)
      }
    }
    return model.group
  }

  const visit = (id: GroupId): void => {
    later(() => {
      const model = models.get(id)
      if (model !== undefined) carryOut(id, visitGroup(model, clock.now()))
    })
  }

  const end = (id: GroupId, member: number, how: MemberEnd): void => {
    const model = models.get(id)
    if (model !== undefined) carryOut(id, endMember(model, member, how, clock.now()))
  }

  const addMember = (id: GroupId, member: number, task: NewTask): void => {
    const model = models.get(id)
    if (model === undefined) return
    if (model.group.cancelled !== undefined) {
      end(id, member, 'cancelled')
      return
    }
    const now = clock.now()
    const { expiresAt, enqueuedAt } = task
    enqueue({
      ...task,
      id: memberId(id, member, task.queue, sha256),
      group: { id, member },
      // Members take their tokens before they are added to the group.
      hasToken: true,
      enqueuedAt: now,
      expiresAt: expiresAt === undefined ? undefined : expiresAt + now - enqueuedAt,
    })
  }

  const unfinished = (): readonly Group[] =>
    [...models.values()].flatMap(({ group }) => (group.state === 'ended' ? [] : [group]))

  const groups = guarded<Groups>(check, {
    async create(group) {
      const known = models.get(group.id)
      if (known !== undefined) {
        if (settings.get(group.id) !== group.settings) throw groupExists(group.id)
        return { group: known.group, isNew: false }
      }
      settings.set(group.id, group.settings)
      followUps.set(group.id, decodeLines(groupFollowUpLines(group.followUps, codec)))
      const model = createGroup(group, clock.now())
      models.set(group.id, model)
      timers.after(group.totalMs, () => visit(group.id))
      return { group: model.group, isNew: true }
    },

    async admit(id, tasks) {
      if (!models.has(id)) admit(tasks)
    },

    async add(id, { key, digest, tasks, seal }) {
      const queues = tasks.map(({ queue }) => queue)
      const before = modelOf(id)
      // A repeated request needs no room in the queues, because its members have been stored.
      if (!before.requests.has(key)) admit(tasks)
      const step = addMembers(before, { key, digest, queues, seal }, clock.now())
      if (typeof step === 'string') throw addRefused(id, step)
      const { start } = step
      const ids = queues.map((queue, i) => memberId(id, start + i, queue, sha256))
      carryOut(id, step)
      // A repeated request adds nothing.
      if (step.model === before) return { start, ids, isNew: false }
      if (step.model.group.queues.length > before.group.queues.length) wakeWatchers(id)
      for (const [i, task] of tasks.entries()) later(() => addMember(id, start + i, task))
      return { start, ids, isNew: true }
    },

    seal: async (id) => carryOut(id, sealGroup(modelOf(id), clock.now())),

    cancel: async (id, by) => carryOut(id, cancelGroup(modelOf(id), { at: clock.now(), reason: 'cancelled', by })),

    find: async (id) => models.get(id)?.group,

    waitUntilEnded(id, signal) {
      const find = (): Group | undefined => {
        check()
        return models.get(id)?.group
      }
      return waiters.wait(id, find, ({ state }) => state === 'ended', signal)
    },

    async watch(id, onChange) {
      const watching = watchers.get(id) ?? new Set()
      watchers.set(id, watching.add(onChange))
      return () => {
        watching.delete(onChange)
        if (watching.size === 0 && watchers.get(id) === watching) watchers.delete(id)
      }
    },

    async members(id, from, limit) {
      const { group, members, queues } = modelOf(id)
      const ends = members.slice(from, from + limit)
      const page = await membersPage(ends.length, async (i) => {
        const member = from + i
        const task = memberId(id, member, group.queues[queues[member] ?? 0] ?? '', sha256)
        const record = find(task)
        const missing = group.state === 'ended' ? 'removed' : 'waiting'
        return { member, id: task, status: ends[i] ?? record?.status ?? missing, record }
      })
      return { group, members: page }
    },

    async unfinished(id) {
      const model = models.get(id)
      if (model === undefined) return undefined
      const { group, members, queues } = model
      const left = members.flatMap((end, member) => (end === undefined ? [member] : []))
      return { group, byQueue: Map.groupBy(left, (member) => group.queues[queues[member] ?? 0] ?? '') }
    },

    count: async () => unfinished().length,

    list: async (limit) => unfinished().toSorted(byId).slice(0, limit),
  })

  return {
    groups,
    ended: ({ id, member }, how) => later(() => end(id as GroupId, member, how)),
    close: () => timers.close(),
  }
}

function byId(one: Group, other: Group): number {
  return one.id < other.id ? -1 : 1
}
