// Derives the ids of a group's members, so that a group does not need to store them, and creates their tasks from stored templates.
import type { GroupId, TaskGroup, TaskId } from '@bullpen/contract'
import {
  createTaskId,
  encodeLines,
  ID_RANDOM_BYTES,
  readGroupId,
  type StoredTemplate,
} from '@bullpen/contract/internal'
import { type ForwardedTask, storedTemplate, templateTask } from '../follow-ups/template.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { digestOf, type Sha256 } from '../task/digest.ts'

/** Returns the id of the member with this number. It contains the time at which the group was created. */
export function memberId(group: GroupId, member: number, queue: string, sha256: Sha256): TaskId {
  const digest = digestOf(['member', group, `${member}`], sha256)
  return createTaskId(queue, readGroupId(group)?.createdAt ?? 0, digest.subarray(0, ID_RANDOM_BYTES))
}

/** Returns the id of the cancel rule that cancels a group's members in a queue. */
export function groupRuleId(group: GroupId, queue: string): TaskId {
  return `${queue}${group.slice(group.lastIndexOf('-'))}` as TaskId
}

/** Returns what is stored of a member until it is enqueued. The member's timeouts start when it is enqueued. */
export function memberTemplate(task: NewTask, codec?: PayloadCodec): StoredTemplate {
  const { expiresAt, enqueuedAt, delayMs = 0 } = task
  const expiresInMs = expiresAt === undefined ? undefined : expiresAt - enqueuedAt - delayMs
  return storedTemplate({ ...task, expiresInMs }, codec)
}

/** Returns a digest of a member, which identifies the member in the records of forwarded tasks. */
export function memberDigest({ id, member }: TaskGroup, sha256: Sha256): Uint8Array {
  return digestOf(['group-member', id, `${member}`], sha256)
}

/** Returns a member's task. `now` is in ms since 1970. */
export function memberTask(group: TaskGroup, template: StoredTemplate, now: number, sha256: Sha256): ForwardedTask {
  const id = memberId(group.id, group.member, template.queue, sha256)
  return {
    task: { ...templateTask(template, id, now), group },
    data: withGroup(template.data, group),
    lines: encodeLines(template.followUps ?? []),
  }
}

/** Returns the envelope with the member's number, which was unknown when the template was stored. */
function withGroup(data: string, group: TaskGroup): string {
  return data.replace(/^\{"v":\d+,/, (head) => `${head}"group":${JSON.stringify(group)},`)
}
