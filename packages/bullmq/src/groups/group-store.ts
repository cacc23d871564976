// Implements the port for groups on Redis.
//
// A group has a hash tag of its own, so each of its scripts runs on one node, and none of them touches a queue. Members are stored in
// the group's outbox, from which they are enqueued (./group-forwarder.ts), and their ends arrive through the outboxes of their queues
// (./group-deliveries.ts). The leader completes what a dead process has left (./group-visits.ts).
import type { GroupId, GroupResult, TaskId } from '@bullpen/contract'
import { MAX_GROUP_MEMBERS, MAX_GROUP_QUEUES, withoutEffect } from '@bullpen/contract/internal'
import type { Broker, NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type AddedMembers,
  addRefused,
  type Group,
  type GroupMember,
  type Groups,
  groupExists,
  groupFollowUpLines,
  groupNotFound,
  memberId,
  membersPage,
  memberTemplate,
} from '@bullpen/engine/internal'
import { requestDigest, sha256 } from '@bullpen/engine/node'
import { type GroupKeys, groupEndedChannel, groupKeys, groupQueuesChannel } from '../keys.ts'
import type { VisitRegistry } from '../leader/visit-registry.ts'
import type { RedisAccess } from '../schema.ts'
import { runScript } from '../scripts/script.ts'
import {
  addMembersScript,
  cancelGroupScript,
  createGroupScript,
  readMembersScript,
  sealGroupScript,
} from '../store/scripts.ts'
import type { GroupWaiters } from '../waiting/group-waiters.ts'
import { cancelMembers } from './group-deliveries.ts'
import { type AddedRequest, addedRequestOf, END_CODES, groupOf, unfinishedMembers } from './group-record.ts'
import { VISIT_AFTER_MS } from './group-visits.ts'

export interface GroupStoreOptions extends RedisAccess {
  readonly registry: Pick<VisitRegistry<GroupId>, 'register' | 'count' | 'ids'>
  readonly codec: PayloadCodec | undefined
  readonly waiters: Pick<GroupWaiters, 'wait' | 'watch'>
  readonly now: () => number
  /** Checks whether the tasks' queues have room for them. Rejects with the error with which an enqueue would be refused. */
  readonly admit: (tasks: readonly NewTask[]) => Promise<void>
  readonly find: Broker['find']
  /** Delivers what is in a group's outbox, without making the caller wait. */
  readonly forward: (id: GroupId) => void
  /** Called for each group that a call has ended. */
  readonly onEnded: (result: GroupResult) => void
}

/** What a request to a group has changed: the fields of the group, and its result if the request has ended it. */
type GroupChange = readonly [fields: readonly string[], result: GroupResult | '']

/** How long an unfinished group is kept after its total timeout, in ms. By then, the leader has ended it. */
const SPARE_MS = 2 * 86_400_000

export function createGroupStore(options: GroupStoreOptions): Groups {
  const { redis, namespace, registry, codec, waiters, call } = options
  const { now, admit, find, forward, onEnded } = options
  const channel = groupEndedChannel(namespace)
  const queuesChannel = groupQueuesChannel(namespace)
  const keysOf = (id: GroupId): GroupKeys => groupKeys(namespace, id)
  const register = (id: GroupId): Promise<void> => registry.register(id, now() + VISIT_AFTER_MS)

  /** Registers the group, changes it, and delivers what follows. @throws BullpenError `group_not_found`. */
  async function change(id: GroupId, run: (keys: GroupKeys) => Promise<GroupChange>): Promise<Group> {
    const [fields, result] = await call(async () => {
      await register(id)
      return run(keysOf(id))
    })
    const group = groupOf(id, fields)
    if (result !== '') onEnded(result)
    if (group === undefined) throw groupNotFound(id)
    forward(id)
    return group
  }

  /**
   * Cancels the members without waiting for the forwarder, which does the same. Resolves when none of them can start any more. If that
   * fails, the forwarder repeats it until it succeeds.
   */
  async function stopMembers({ id: group, queues, cancelled }: Group): Promise<void> {
    const stopping = queues.map(async (queue) => {
      const { known } = await cancelMembers(redis, namespace, { group, queue, by: cancelled?.by ?? '' })
      await known
    })
    await Promise.allSettled(stopping)
  }

  async function read(id: GroupId): Promise<Group | undefined> {
    return call(async () => {
      const fields = await redis.hgetall(keysOf(id).meta)
      return groupOf(id, Object.entries(fields).flat())
    })
  }

  /** Returns what an earlier request with this key has added. Returns undefined if there is none, or if Redis cannot be reached. */
  async function earlierRequest(id: GroupId, key: string): Promise<AddedRequest | undefined> {
    const text = await call(() => redis.hget(keysOf(id).requests, key)).catch(() => undefined)
    return text ? addedRequestOf(text) : undefined
  }

  async function memberAt(
    group: Group,
    member: number,
    code: number | undefined,
    queue: number | undefined,
  ): Promise<GroupMember> {
    const id: TaskId = memberId(group.id, member, group.queues[queue ?? 0] ?? '', sha256)
    const record = await find(id)
    const end = END_CODES[code ?? 0] ?? (group.state === 'ended' ? 'removed' : undefined)
    // A member that has not been enqueued yet waits in the group's outbox.
    return { member, id, status: end ?? record?.status ?? 'waiting', record }
  }

  return {
    async create({ id, by, onError, totalMs, keepMs, followUps, settings }) {
      const lines = groupFollowUpLines(followUps, codec)
      if (totalMs < VISIT_AFTER_MS) await call(() => registry.register(id, now() + totalMs))
      const args = { by, onError, totalMs, keepMs, spareMs: SPARE_MS, lines, digest: requestDigest(settings) }
      let isNew = false
      const group = await change(id, async (keys) => {
        const reply = await runScript(redis, createGroupScript, keys, args)
        if (reply === 'reused') throw groupExists(id)
        const [fields, created] = reply
        isNew = created === 1
        return [fields, '']
      })
      return { group, isNew }
    },

    async admit(id, tasks) {
      try {
        await admit(tasks)
      } catch (error) {
        const group = await read(id).catch(() => undefined)
        if (group === undefined) throw withoutEffect(error)
      }
    },

    async add(id, { key, digest, tasks, seal }) {
      const added = (start: number, isNew: boolean): AddedMembers => ({
        start,
        isNew,
        ids: tasks.map(({ queue }, i) => memberId(id, start + i, queue, sha256)),
      })
      try {
        await admit(tasks)
      } catch (error) {
        // A repeated request needs no room in the queues, because its members have been stored.
        const earlier = await earlierRequest(id, key)
        if (earlier === undefined) throw error
        if (earlier.digest !== digest) throw addRefused(id, 'reused')
        return added(earlier.start, false)
      }
      const more = tasks.flatMap((task) => [task.queue, JSON.stringify(memberTemplate(task, codec))])
      const limits = { maxMembers: MAX_GROUP_MEMBERS, maxQueues: MAX_GROUP_QUEUES }
      const start = await call(async () => {
        await register(id)
        const args = { id, channel, queuesChannel, key, digest, seal: seal ? '1' : '', ...limits }
        return runScript(redis, addMembersScript, keysOf(id), args, more)
      })
      if (start === 'missing') throw groupNotFound(id)
      if (typeof start === 'string') throw addRefused(id, start)
      forward(id)
      return typeof start === 'number' ? added(start, true) : added(start[0], false)
    },

    seal: (id) => change(id, (keys) => runScript(redis, sealGroupScript, keys, { id, channel })),

    async cancel(id, by) {
      const group = await change(id, (keys) => runScript(redis, cancelGroupScript, keys, { id, channel, by }))
      if (group.state !== 'ended') await stopMembers(group)
      return group
    },

    find: read,

    async waitUntilEnded(id, signal) {
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const stop = waiters.wait(id, wake)
      try {
        for (;;) {
          // Created before the read, so that an end during the read is not missed.
          changed = Promise.withResolvers()
          const group = await read(id)
          if (group === undefined || group.state === 'ended' || signal.aborted) return group
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        stop()
      }
    },

    watch: async (id, onChange) => waiters.watch(id, onChange),

    async members(id, from, limit) {
      const [fields, ends, queues] = await call(() => runScript(redis, readMembersScript, keysOf(id), { from, limit }))
      const group = groupOf(id, fields)
      if (group === undefined) throw groupNotFound(id)
      const members = await membersPage(ends.length, (i) => memberAt(group, from + i, ends[i], queues[i]))
      return { group, members }
    },

    async unfinished(id) {
      return call(async () => {
        const { meta, members, queues } = keysOf(id)
        // The hash is read first, so that it has no member whose queue is unknown.
        const [fields, ends, positions] = await Promise.all([
          redis.hgetall(meta),
          redis.getBuffer(members),
          redis.getBuffer(queues),
        ])
        const group = groupOf(id, Object.entries(fields).flat())
        return group && { group, byQueue: unfinishedMembers(group, ends, positions) }
      })
    },

    count: () => call(registry.count),

    async list(limit) {
      const ids = await call(registry.ids)
      const unfinished: Group[] = []
      // A group stays registered for up to a minute after its end.
      for (let from = 0; from < ids.length && unfinished.length < limit; from += limit) {
        const groups = await Promise.all(ids.slice(from, from + limit).map(read))
        for (const group of groups) if (group !== undefined && group.state !== 'ended') unfinished.push(group)
      }
      return unfinished.slice(0, limit)
    },
  }
}
