// Creates the tasks of a group's members from their stored templates.
import type { TaskGroup } from '@bullpen/contract'
import { encodeLines, type StoredTemplate } from '@bullpen/contract/internal'
import { type ForwardedTask, storedTemplate, templateTask } from '../follow-ups/template.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import type { Sha256 } from '../task/child-task.ts'
import { memberId } from './member-id.ts'

/** Returns what is stored of a member until it is enqueued. The member's timeouts start when it is enqueued. */
export function memberTemplate(task: NewTask, codec?: PayloadCodec): StoredTemplate {
  const { expiresAt, enqueuedAt, delayMs = 0 } = task
  const expiresInMs = expiresAt === undefined ? undefined : expiresAt - enqueuedAt - delayMs
  return storedTemplate({ ...task, expiresInMs }, codec)
}

/** Returns a digest of a member, which identifies the member in the records of forwarded tasks. */
export function memberDigest({ id, member }: TaskGroup, sha256: Sha256): Uint8Array {
  return sha256(['group-member', id, `${member}`].map((part) => `${part.length}:${part}`).join(''))
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
