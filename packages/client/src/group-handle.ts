// Defines the handle of a group.
import type {
  EventGap,
  GroupEnded,
  GroupSnapshot,
  GroupView,
  InputOf,
  MemberOptions,
  MemberRequest,
  MemberResult,
  MembersAdded,
  StreamedEvent,
  TaskDefinition,
} from '@bullpen/contract'
import type { Abortable, WaitOptions } from './task-handle.ts'

export interface AddOptions extends Abortable {
  /** Whether to seal the group with this call. Defaults to false. */
  readonly seal?: boolean
}

/** An event that {@link GroupHandle.events} yields. The last event is `group_ended`. */
export type GroupStreamEvent = StreamedEvent | GroupSnapshot | EventGap | GroupEnded

export interface GroupHandle {
  readonly id: string
  /**
   * Adds one task for each input, any number of them, in calls of up to 1,000. The options apply to every task. Each call stores either
   * all of its tasks or none, and the client repeats it without adding anything twice. The returned numbers are consecutive unless
   * another caller adds members at the same time. The API puts the members into their queues directly afterwards. Until then,
   * `client.task` rejects the member's id with `task_not_found`, while {@link results} already has the member as `waiting`.
   *
   * @throws ProblemError `group_sealed`, `group_ended`, `group_full`, `queue_full` and others with which an enqueue is refused. The
   * members of earlier calls of the same `add` then stay in the group.
   */
  add<D extends TaskDefinition>(
    definition: D,
    inputs: readonly InputOf<D>[],
    options?: MemberOptions & AddOptions,
  ): Promise<MembersAdded>
  /** Like {@link add}, but for tasks of any definitions, each with its own options. Inputs must be JSON. */
  addNamed(tasks: readonly MemberRequest[], options?: AddOptions): Promise<MembersAdded>
  /** Seals the group. No further members can be added, and the group ends as soon as all its members have ended. Idempotent. */
  seal(options?: Abortable): Promise<GroupView>
  /** Cancels all members that have not ended, and seals the group. Does not wait until they have ended. Idempotent. */
  cancel(options?: Abortable & { readonly by?: string }): Promise<GroupView>
  /** Returns the group's current state. */
  describe(options?: Abortable): Promise<GroupView>
  /** Resolves to the group once it has ended. @throws ResultTimeoutError if `timeout` expires first. */
  waitUntilEnded(options?: WaitOptions): Promise<GroupView>
  /**
   * Returns the members in the order of their numbers, also while the group runs. The client reads 200 members at a time.
   *
   * @example
   * for await (const { member, status, output } of group.results()) console.log(member, status, output)
   */
  results(options?: Abortable & { readonly from?: number }): AsyncIterable<MemberResult>
  /**
   * Streams what happens to the members, from the first event of the group until `group_ended`. No event is missed between the creation of
   * the group and this call, and queues in which members are added later are included. If the connection is lost, the client connects
   * again and continues after the last event. If the first events may no longer be kept, the stream begins with a `snapshot` of the
   * group. If later events are no longer kept when the stream is resumed, it yields a `gap` and a `snapshot`. In both cases, the stream
   * continues with the oldest event that is kept. The events of one queue are in order. Members without events, such as most short tasks,
   * appear only in the group's counts.
   *
   * @throws ProblemError `group_not_found`, or if the API has been unreachable for `retryFor`.
   */
  events(options?: Abortable): AsyncGenerator<GroupStreamEvent, void, void>
}
