// Defines the port for groups: tasks that are awaited and cancelled together.
import type {
  GroupCancelReason,
  GroupId,
  GroupOnError,
  GroupPhase,
  GroupResult,
  MemberEnd,
  TaskId,
  TaskRecord,
  TaskStatus,
} from '@bullpen/contract'
import type { NewFollowUp, NewTask } from './new-task.ts'

/** A group to create. Times are in ms. */
export interface NewGroup {
  readonly id: GroupId
  readonly by: string
  readonly onError: GroupOnError
  /** The time limit from the group's creation to its end. */
  readonly totalMs: number
  /** How long the group is kept after it has ended. */
  readonly keepMs: number
  /** The tasks to enqueue when the group has ended. Defaults to none. */
  readonly followUps?: readonly NewFollowUp[] | undefined
  /** All settings as a string, with which a repeated request is recognised. Who creates the group does not matter. */
  readonly settings: string
}

/** A group's current state. Times are in ms since 1970, on the store's clock. */
export interface Group {
  readonly id: GroupId
  readonly state: GroupPhase
  readonly by: string
  readonly onError: GroupOnError
  readonly createdAt: number
  readonly timeoutAt: number
  readonly keepMs: number
  /** The number of members. */
  readonly count: number
  /** How many members have ended in each way. */
  readonly ends: Readonly<Record<MemberEnd, number>>
  /** The queues of the members. */
  readonly queues: readonly string[]
  readonly sealedAt: number | undefined
  readonly cancelled: GroupCancel | undefined
  readonly ended: GroupEnd | undefined
}

export interface GroupCancel {
  readonly at: number
  readonly reason: GroupCancelReason
  readonly by: string
}

export interface GroupEnd {
  readonly at: number
  readonly result: GroupResult
}

/** Members to add to a group in one atomic step. */
export interface NewMembers {
  /** Identifies the request. A repeated request with the same key adds nothing, and returns the same numbers. */
  readonly key: string
  /** A digest of the request. A different request with the same key is refused. */
  readonly digest: string
  /** At most 1,000 tasks. Their ids are ignored, because a member's id is derived from the group's id and the member's number. */
  readonly tasks: readonly NewTask[]
  /** Whether to seal the group. */
  readonly seal: boolean
}

export interface AddedMembers {
  /** The number of the first member. The members are numbered in order, starting from 0. */
  readonly start: number
  readonly ids: readonly TaskId[]
  /** False if an earlier request with the same key has added the members. */
  readonly isNew: boolean
}

export interface CreatedGroup {
  readonly group: Group
  /** False if the group existed. */
  readonly isNew: boolean
}

/** A member of a group, as its results show it. */
export interface GroupMember {
  readonly member: number
  readonly id: TaskId
  /** The first end of the member or, if it has not ended, the current status of its task. */
  readonly status: TaskStatus | 'removed'
  /** Undefined if the member has not been enqueued yet, or if its task has been deleted. */
  readonly record: TaskRecord | undefined
}

export interface GroupMembers {
  readonly group: Group
  readonly members: readonly GroupMember[]
}

/** A group with its members that have not ended. */
export interface UnfinishedMembers {
  readonly group: Group
  /** The numbers of these members by queue, in ascending order. */
  readonly byQueue: ReadonlyMap<string, readonly number[]>
}

/**
 * Stores groups. Every call that changes a group is atomic and idempotent.
 *
 * A member is stored in the group first, and enqueued in its queue directly afterwards, by this process or, if this process dies, by
 * another one within seconds. From then on, it is an ordinary task. The group learns of each member's end through the outbox of the
 * member's queue, so its numbers lag behind by a few milliseconds.
 *
 * @throws BullpenError `group_not_found` if the group does not exist or is no longer kept, or `redis_unavailable`.
 */
export interface Groups {
  /**
   * Creates a group. If a group with this id and the same settings exists, the group is left unchanged. Takes two round trips.
   *
   * @throws BullpenError `payload_too_large` if the follow-ups exceed 64 KiB, or `idempotency_key_reused` if the group exists with
   * other settings.
   */
  create(group: NewGroup): Promise<CreatedGroup>
  /**
   * Checks whether the first members could be added to a group that is created next, without storing anything, so that no group is
   * created in vain. Resolves as well if the group exists, because a repeated request needs no room. Takes one round trip for each
   * queue, and one more if the tasks are refused.
   *
   * @throws BullpenError with which `Broker.enqueue` refuses a task.
   */
  admit(id: GroupId, tasks: readonly NewTask[]): Promise<void>
  /**
   * Adds members, either all of them or none. Takes two round trips, and two more for each queue. The limits of the members' queues
   * are checked before the members are stored, so concurrent requests can exceed a limit together. A stored member is never
   * refused afterwards.
   *
   * @throws BullpenError `group_sealed`, `group_ended`, `group_full` if the group would have more than 100,000 members,
   * `invalid_request` if they would belong to more than 16 queues, `group_busy` if too many members wait to be enqueued,
   * `idempotency_key_reused`, or an error with which `Broker.enqueue` refuses a task.
   */
  add(id: GroupId, members: NewMembers): Promise<AddedMembers>
  /** Seals a group, so that no members can be added. The group ends as soon as all its members have ended. Takes two round trips. */
  seal(id: GroupId): Promise<Group>
  /**
   * Cancels a group: seals it, and cancels all members that have not ended. Once the promise has resolved, no member starts on any
   * worker, unless a queue of the group has too many unfinished cancellations by filter or its node cannot be reached; its members are
   * then cancelled later. The call does not wait until the members have ended. It takes a few milliseconds, or up to 2.5 s if a worker
   * does not respond. A group that was already cancelled or has ended stays as it is.
   */
  cancel(id: GroupId, by: string): Promise<Group>
  /** Returns a group, or undefined. Takes one round trip. */
  find(id: GroupId): Promise<Group | undefined>
  /**
   * Resolves with the group once it has ended, or with its current state when the signal aborts. Resolves with undefined if the group
   * does not exist. Waiting does not poll.
   */
  waitUntilEnded(id: GroupId, signal: AbortSignal): Promise<Group | undefined>
  /**
   * Calls the listener when the group has ended, when it has members in a further queue, and whenever either may have been missed,
   * until the returned function is called. Once the promise has resolved, no later change is missed. Nothing is polled.
   */
  watch(id: GroupId, onChange: () => void): Promise<() => void>
  /**
   * Returns members in the order of their numbers, beginning with `from`: at most `limit`, which is a number from 1 to 200, and fewer if
   * their outputs together take more than about 1 MiB.
   */
  members(id: GroupId, from: number, limit: number): Promise<GroupMembers>
  /**
   * Returns all members that have not ended, or undefined if the group does not exist. Takes one round trip, in which Redis sends up to
   * 90 kB for a group of 100,000 members.
   */
  unfinished(id: GroupId): Promise<UnfinishedMembers | undefined>
  /**
   * Returns how many groups have not ended. A group whose end was less than about a minute ago may be counted. Takes one round trip and
   * constant time.
   */
  count(): Promise<number>
  /** Returns groups that have not ended, the oldest first. `limit` is a number from 1 to 200. */
  list(limit: number): Promise<readonly Group[]>
}
