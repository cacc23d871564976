// Defines the entries of an outbox, which say what follows from the end of a task.
//
// An entry is one text: a head of fields, separated by blanks, then the template of a task and, on further lines, what follows that
// task. Its first letter is the entry's kind:
//
//   t <source id> <source timestamp> <end> <slot> <template>[\n<line>…]     a task to enqueue
//   g <group id> <member> <letter>                                         the end of a group's member
//   g <run token> <stage>.<position> <letter>[\n<result>]                  the end of a pipeline run's task
//
// Only the outbox of a group has these:
//
//   m <group id> <member> <template>                                       a member to enqueue
//   k <group id> <queue> <by>                                              a queue in which the group's members are to be cancelled
//
// The outbox of a pipeline run has the second of these, and:
//
//   i <run token> <stage> <position>\n<value>                              a task to enqueue
//
// A run's token is `run-`, the 26 characters of its id, a dot, and the run's incarnation. The task that reduces the run's results is not
// cancelled with the others, so its token begins with `reduce-` instead.
//
// Scripts write entries without parsing any JSON (../store/lua/includes/outbox.lua). A process that cannot read an entry, because another
// version has written it, leaves the entry in the outbox.
import type { GroupId } from '@bullpen/contract'
import { parseTemplate, type StoredTemplate } from '@bullpen/contract/internal'
import { type ReleasedFollowUp, type RunRef, runOfToken } from '@bullpen/engine/internal'
import type { EndLetter } from '../groups/end-letters.ts'

/** A follow-up task to enqueue. */
export interface TaskEntry extends ReleasedFollowUp {
  readonly kind: 'task'
}

/** The end of a group's member, which its group has to learn. */
export interface MemberEndEntry {
  readonly kind: 'memberEnd'
  readonly group: GroupId
  readonly member: number
  readonly letter: EndLetter
}

/** A group's member to enqueue. */
export interface MemberEntry {
  readonly kind: 'member'
  readonly group: GroupId
  readonly member: number
  readonly template: StoredTemplate
}

/** The members of a cancelled group in one queue. */
export interface GroupCancelEntry {
  readonly kind: 'groupCancel'
  readonly group: GroupId
  readonly queue: string
  /** Who has cancelled the group. */
  readonly by: string
}

/** The end of a pipeline run's task. */
export interface RunTaskEndEntry {
  readonly kind: 'runTaskEnd'
  readonly run: RunRef
  readonly stage: number
  readonly position: number
  readonly letter: EndLetter
  /** What is stored as the task's result, as JSON, or '' if the task is not completed. */
  readonly result: string
}

/** A task of a pipeline run to enqueue. */
export interface RunTaskEntry {
  readonly kind: 'runTask'
  readonly run: RunRef
  readonly stage: number
  readonly position: number
  /** The input of the task, unless the task has the input of its template: see engine/src/pipelines/run-task.ts. */
  readonly value: string
}

export type OutboxEntry = TaskEntry | MemberEndEntry | MemberEntry | GroupCancelEntry | RunTaskEndEntry

/** Reads an entry. Returns undefined if another version of Bullpen has written it. */
export function parseEntry(text: string): OutboxEntry | undefined {
  return PARSERS[text[0] ?? '']?.(text)
}

const PARSERS: Readonly<Record<string, (text: string) => OutboxEntry | undefined>> = {
  t: parseTask,
  g: (text) => parseMemberEnd(text) ?? parseRunTaskEnd(text),
  m: parseMember,
  k: parseGroupCancel,
}

function parseTask(text: string): TaskEntry | undefined {
  const [, source, timestamp, end, slot, rest] = TASK_ENTRY.exec(text) ?? []
  if (source === undefined || slot === undefined || rest === undefined) return undefined
  const lineEnd = rest.indexOf('\n')
  const template = parseTemplate(lineEnd === -1 ? rest : rest.slice(0, lineEnd))
  if (template === undefined) return undefined
  const next = lineEnd === -1 ? '' : rest.slice(lineEnd + 1)
  return { kind: 'task', source, timestamp: Number(timestamp), end: Number(end), slot, template, next }
}

const TASK_ENTRY = /^t (\S+) (\d+) (\d+) (\S+) (\{.*)$/s

function parseMemberEnd(text: string): MemberEndEntry | undefined {
  const [, group, member, letter] = /^g (\S+) (\d+) ([cdxer])$/.exec(text) ?? []
  if (group === undefined || letter === undefined) return undefined
  return { kind: 'memberEnd', group: group as GroupId, member: Number(member), letter: letter as EndLetter }
}

function parseMember(text: string): MemberEntry | undefined {
  const [, group, member, rest] = /^m (\S+) (\d+) (\{.*)$/s.exec(text) ?? []
  const template = rest === undefined ? undefined : parseTemplate(rest)
  if (group === undefined || template === undefined) return undefined
  return { kind: 'member', group: group as GroupId, member: Number(member), template }
}

function parseGroupCancel(text: string): GroupCancelEntry | undefined {
  const [, group, queue, by] = /^k (\S+) (\S+) (.*)$/s.exec(text) ?? []
  if (group === undefined || queue === undefined || by === undefined) return undefined
  return { kind: 'groupCancel', group: group as GroupId, queue, by }
}

const RUN_TASK_END = /^g ((?:run|reduce)-\S+) (\d+)\.(\d+) ([cdxer])(?:\n(.*))?$/s

function parseRunTaskEnd(text: string): RunTaskEndEntry | undefined {
  const [, token, stage, position, letter, result = ''] = RUN_TASK_END.exec(text) ?? []
  if (token === undefined || letter === undefined) return undefined
  const number = { stage: Number(stage), position: Number(position) }
  return { kind: 'runTaskEnd', run: runOfToken(token), ...number, letter: letter as EndLetter, result }
}

/** Reads an entry of a run's outbox. Returns undefined if another version of Bullpen has written it. */
export function parseRunEntry(text: string): RunTaskEntry | GroupCancelEntry | undefined {
  return text.startsWith('k') ? parseGroupCancel(text) : parseRunTask(text)
}

function parseRunTask(text: string): RunTaskEntry | undefined {
  const [, token, stage, position, value = ''] = /^i (\S+) (\d+) (\d+)\n(.*)$/s.exec(text) ?? []
  if (token === undefined) return undefined
  return { kind: 'runTask', run: runOfToken(token), stage: Number(stage), position: Number(position), value }
}
