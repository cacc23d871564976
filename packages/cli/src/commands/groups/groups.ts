// bullpen groups: lists, shows, creates, seals and cancels groups, adds members to them, and prints their members' results.
import { type GroupHandle, ProblemError } from '@bullpen/client'
import type { MembersAdded } from '@bullpen/contract'
import { GROUP_KEEP, GROUP_ON_ERROR, GROUP_TOTAL_TIMEOUT, PAGINATION } from '@bullpen/contract/internal'
import { parseFollowUps } from '../../arguments/enqueue-options.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseDurationWithin,
  requireValue,
  withoutUndefined,
} from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { MAX_REQUEST_BYTES } from '../../bulk/sender.ts'
import { openSource, readSource } from '../../bulk/source.ts'
import { readTaskLines, type TaskLine } from '../../bulk/task-lines.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { count, plain } from '../../output/format.ts'
import { namingLines } from '../../output/tasks/bulk-text.ts'
import { groupLines, groupListLines, memberLine } from '../../output/tasks/group-text.ts'
import { type Action, runAction } from '../actions.ts'
import type { CommandContext } from '../command-context.ts'
import { endedOrCurrent, MAX_WAIT } from '../wait-for-task.ts'

const ACTIONS = {
  list: { options: ['limit'], usage: '', run: list },
  show: { options: ['wait'], usage: 'ID', run: show },
  create: {
    options: ['bulk', 'on-success', 'on-failure', 'on-end', 'on-error', 'total-timeout', 'keep', 'open', 'wait', 'by'],
    usage: '',
    run: create,
  },
  add: { options: ['bulk', 'seal', 'wait'], usage: 'ID', run: add },
  seal: { options: ['wait'], usage: 'ID', run: seal },
  cancel: { options: ['wait', 'by'], usage: 'ID', run: cancel },
  results: { options: ['from', 'limit'], usage: 'ID', run: results },
} as const satisfies Readonly<Record<string, Action>>

export async function groups(context: CommandContext): Promise<ExitCode> {
  return await runAction('groups', ACTIONS, context)
}

async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const limit = parseCount('--limit', values.limit, PAGINATION.max)
  const found = await connect().listGroups(withoutUndefined({ limit }))
  await out.answer({ groups: found }, (layout) => groupListLines(found, layout))
  if (found.length === 0) out.remark('every group has ended')
  return EXIT.success
}

async function show(context: CommandContext, id: string): Promise<ExitCode> {
  return await printGroup(context, context.connect().group(id))
}

async function create(context: CommandContext): Promise<ExitCode> {
  const { values, connect, by } = context
  const { bulk, open = false } = values
  const settings = withoutUndefined({
    onError: parseChoice('--on-error', values['on-error'], GROUP_ON_ERROR),
    totalTimeout: parseDurationWithin('--total-timeout', values['total-timeout'], GROUP_TOTAL_TIMEOUT),
    keep: parseDurationWithin('--keep', values.keep, GROUP_KEEP),
    by,
    ...parseFollowUps(values),
  })
  const tasks = bulk === undefined ? [] : await readTasks(context, bulk)
  const group = await connect().createGroup(settings)
  if (tasks.length > 0) {
    try {
      await addTasks(group, tasks, !open)
    } catch (error) {
      await leaveGroup(context, group)
      throw error
    }
  }
  return await printGroup(context, group)
}

/** Cancels a new group that has no members, and otherwise says what can be done with it. */
async function leaveGroup({ out }: CommandContext, group: GroupHandle): Promise<void> {
  const { id } = group
  const found = await group.describe().catch(() => undefined)
  if (found?.count === 0) await group.cancel().catch(() => {})
  else {
    const has = found === undefined ? 'may have members' : `has ${count(found.count, 'member')}`
    out.remark(`${id} ${has} and is not sealed`)
    out.remark(
      `add the other tasks with 'bullpen groups add ${id} --bulk FILE --seal', or run 'bullpen groups cancel ${id}'`,
    )
  }
}

/** Adds the tasks of a file. If one of them is rejected, the error names its line. */
async function addTasks(group: GroupHandle, tasks: readonly TaskLine[], seal: boolean): Promise<MembersAdded> {
  try {
    return await group.addNamed(
      tasks.map(({ task }) => task),
      { seal },
    )
  } catch (error) {
    throw error instanceof ProblemError ? namingLines(error, (index) => tasks[index]?.number) : error
  }
}

async function add(context: CommandContext, id: string): Promise<ExitCode> {
  const { values, connect, out } = context
  const tasks = await readTasks(context, requireValue('--bulk FILE', values.bulk))
  const group = connect().group(id)
  const added = await addTasks(group, tasks, values.seal ?? false)
  if (values.wait !== undefined) return await printGroup(context, group)
  await out.answer(added, () => [`${plain(id)}  ${count(added.count, 'member')} added, from number ${added.start}`])
  return EXIT.success
}

async function seal(context: CommandContext, id: string): Promise<ExitCode> {
  const group = context.connect().group(id)
  await group.seal()
  return await printGroup(context, group)
}

async function cancel(context: CommandContext, id: string): Promise<ExitCode> {
  const { connect, by } = context
  const group = connect().group(id)
  await group.cancel(withoutUndefined({ by }))
  return await printGroup(context, group, 'any result')
}

async function results({ values, connect, out }: CommandContext, id: string): Promise<ExitCode> {
  const from = parseCount('--from', values.from) ?? 0
  let left = parseCount('--limit', values.limit) ?? Number.POSITIVE_INFINITY
  for await (const member of connect().group(id).results({ from })) {
    if (left-- <= 0) break
    if (!(await out.answer(member, (layout) => [memberLine(member, layout)]))) break
  }
  return EXIT.success
}

/** Prints a group, with --wait once it has ended. Unless any result will do, the exit code then shows whether it completed. */
async function printGroup(
  { values, connect, out }: CommandContext,
  group: GroupHandle,
  expected: 'completed' | 'any result' = 'completed',
): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  const waiting = connect(WHILE_WAITING).group(group.id)
  const found =
    wait === undefined
      ? await group.describe()
      : await endedOrCurrent(() => waiting.waitUntilEnded({ timeout: wait }), waiting.describe)
  await out.answer(found, (layout) => groupLines(found, layout))
  if (wait === undefined) return EXIT.success
  return found.state === 'ended' && (expected === 'any result' || found.result === expected)
    ? EXIT.success
    : EXIT.incomplete
}

/** Reads the tasks of a file. @throws UsageError if a line is not a task, or if there is none. */
async function readTasks({ stdin }: CommandContext, file: string): Promise<readonly TaskLine[]> {
  const source = readSource(await openSource(file, stdin), file)
  const tasks: TaskLine[] = []
  for await (const line of readTaskLines(source, { task: undefined, defaults: {}, maxBytes: MAX_REQUEST_BYTES })) {
    if ('problem' in line) throw new UsageError(`line ${line.number}: ${line.problem}; nothing was enqueued`)
    tasks.push(line)
  }
  if (tasks.length === 0) throw new UsageError(`${file === '-' ? 'standard input' : file} contains no tasks`)
  return tasks
}
