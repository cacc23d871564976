// Decides how a group changes: when members are added or end, when it is sealed or cancelled, and when its total timeout passes.
//
// Every function is pure, and returns the changed group with what follows from the change. The memory broker stores a group in this
// form. On Redis, scripts make the same decisions (bullmq, store/lua/includes/group.lua), and a test compares both.
import type { GroupCancelReason, GroupResult, MemberEnd } from '@bullpen/contract'
import { MAX_GROUP_MEMBERS, MAX_GROUP_QUEUES, MEMBER_ENDS } from '@bullpen/contract/internal'
import type { Group, GroupCancel, NewGroup } from '../ports/broker/groups.ts'
import type { AddRefusal } from './group-errors.ts'

/** A group with what is known about each of its members. */
export interface GroupModel {
  readonly group: Group
  /** For each member, the first end, or undefined if the member has not ended. */
  readonly members: readonly (MemberEnd | undefined)[]
  /** For each member, its queue's position in `group.queues`. */
  readonly queues: readonly number[]
  /** The requests that have added members, by key. */
  readonly requests: ReadonlyMap<string, { readonly digest: string; readonly start: number; readonly count: number }>
}

export type GroupEffect =
  /** The members in these queues have to be cancelled. */
  | { readonly kind: 'cancel'; readonly queues: readonly string[]; readonly cancel: GroupCancel }
  | { readonly kind: 'ended'; readonly result: GroupResult }

export interface GroupStep {
  readonly model: GroupModel
  readonly effects: readonly GroupEffect[]
}

/**
 * How long after its cancellation a group ends at the latest, in ms. A member that has not reported its end by then counts as removed,
 * because a program other than Bullpen may have deleted its task.
 */
export const FORCED_END_MS = 3_600_000

const NO_ENDS = Object.fromEntries(MEMBER_ENDS.map((end) => [end, 0])) as Record<MemberEnd, number>

export function createGroup({ id, by, onError, totalMs, keepMs }: Omit<NewGroup, 'settings'>, now: number): GroupModel {
  const group: Group = {
    id,
    state: 'open',
    by,
    onError,
    createdAt: now,
    timeoutAt: now + totalMs,
    keepMs,
    count: 0,
    ends: NO_ENDS,
    queues: [],
    sealedAt: undefined,
    cancelled: undefined,
    ended: undefined,
  }
  return { group, members: [], queues: [], requests: new Map() }
}

export interface Addition {
  readonly key: string
  readonly digest: string
  /** The queue of each member. */
  readonly queues: readonly string[]
  readonly seal: boolean
}

/** Adds members. Returns the number of the first one, or why the group refuses the request, which then changes nothing. */
export function addMembers(
  model: GroupModel,
  { key, digest, queues, seal }: Addition,
  now: number,
): AddRefusal | (GroupStep & { readonly start: number }) {
  const known = model.requests.get(key)
  if (known !== undefined) {
    if (known.digest !== digest) return 'reused'
    return { model, effects: [], start: known.start }
  }
  const { group } = model
  if (group.state !== 'open') return group.state
  const start = group.count
  if (start + queues.length > MAX_GROUP_MEMBERS) return 'full'
  const names = [...new Set([...group.queues, ...queues])]
  if (names.length > MAX_GROUP_QUEUES) return 'queues'
  const added: GroupModel = {
    group: { ...group, count: start + queues.length, queues: names },
    members: [...model.members, ...queues.map(() => undefined)],
    queues: [...model.queues, ...queues.map((queue) => names.indexOf(queue))],
    requests: new Map(model.requests).set(key, { digest, start, count: queues.length }),
  }
  return { start, ...(seal ? sealGroup(added, now) : { model: added, effects: [] }) }
}

/** Seals a group. A sealed group ends as soon as all its members have ended. */
export function sealGroup(model: GroupModel, now: number): GroupStep {
  const { group } = model
  if (group.state !== 'open') return { model, effects: [] }
  return endIfComplete({ ...model, group: { ...group, state: 'sealed', sealedAt: now } }, [], now)
}

/** Records the end of a member. Only the first end of each member counts. */
export function endMember(model: GroupModel, member: number, end: MemberEnd, now: number): GroupStep {
  const { group } = model
  const isKnown = group.state === 'ended' || member >= group.count || model.members[member] !== undefined
  if (isKnown) return { model, effects: [] }
  const ended: GroupModel = {
    ...model,
    members: model.members.with(member, end),
    group: { ...group, ends: { ...group.ends, [end]: group.ends[end] + 1 } },
  }
  const isError = end === 'dead' || end === 'expired'
  if (!isError || group.onError === 'continue') return endIfComplete(ended, [], now)
  return cancelGroup(ended, { at: now, reason: 'first_error', by: `group ${group.id}` })
}

/** Cancels a group, which also seals it. A group that was already cancelled or has ended stays as it is. */
export function cancelGroup(model: GroupModel, cancel: GroupCancel): GroupStep {
  const { group } = model
  if (group.state === 'ended') return { model, effects: [] }
  if (group.cancelled !== undefined) return endIfComplete(model, [], cancel.at)
  const { sealedAt = cancel.at, queues } = group
  const cancelled: GroupModel = { ...model, group: { ...group, state: 'sealed', sealedAt, cancelled: cancel } }
  return endIfComplete(cancelled, [{ kind: 'cancel', queues, cancel }], cancel.at)
}

/** Looks whether a time limit of the group has passed: its total timeout, or the limit after its cancellation. */
export function visitGroup(model: GroupModel, now: number): GroupStep {
  const { group } = model
  if (group.state === 'ended') return { model, effects: [] }
  if (group.cancelled === undefined) {
    if (now < group.timeoutAt) return { model, effects: [] }
    return cancelGroup(model, { at: now, reason: 'group_timeout', by: `group ${group.id}` })
  }
  if (now < group.cancelled.at + FORCED_END_MS) return { model, effects: [] }
  const missing = group.count - endedMembers(group)
  const removed = group.ends.removed + missing
  return endIfComplete({ ...model, group: { ...group, ends: { ...group.ends, removed } } }, [], now)
}

/** Returns how many members have ended. */
export function endedMembers({ ends }: Pick<Group, 'ends'>): number {
  return MEMBER_ENDS.reduce((sum, end) => sum + ends[end], 0)
}

/** Returns the result of a group whose members have all ended. */
export function resultOf(
  { count, ends }: Pick<Group, 'count' | 'ends'>,
  reason: GroupCancelReason | undefined,
): GroupResult {
  if (count > 0 && ends.completed === count) return 'completed'
  if (reason === 'cancelled') return 'cancelled'
  if (ends.dead + ends.expired > 0 || reason === 'group_timeout') return 'failed'
  return count === 0 ? 'completed' : 'cancelled'
}

function endIfComplete(model: GroupModel, effects: readonly GroupEffect[], now: number): GroupStep {
  const { group } = model
  if (group.state !== 'sealed' || endedMembers(group) < group.count) return { model, effects }
  const result = resultOf(group, group.cancelled?.reason)
  const ended: Group = { ...group, state: 'ended', ended: { at: now, result } }
  return { model: { ...model, group: ended }, effects: [...effects, { kind: 'ended', result }] }
}
