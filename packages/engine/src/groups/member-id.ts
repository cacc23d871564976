// Derives the id of a group's member, so that a group does not need to store its members' ids.
import type { GroupId, TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, readGroupId } from '@bullpen/contract/internal'
import type { Sha256 } from '../task/child-task.ts'

/** Returns the id of the member with this number. It contains the time at which the group was created. */
export function memberId(group: GroupId, member: number, queue: string, sha256: Sha256): TaskId {
  // Each part is prefixed with its length, so that different parts never produce the same string.
  const text = ['member', group, `${member}`].map((part) => `${part.length}:${part}`).join('')
  return createTaskId(queue, readGroupId(group)?.createdAt ?? 0, sha256(text).subarray(0, ID_RANDOM_BYTES))
}

/** Returns the id of the cancel rule that cancels a group's members in a queue. */
export function groupRuleId(group: GroupId, queue: string): TaskId {
  return `${queue}${group.slice(group.lastIndexOf('-'))}` as TaskId
}
