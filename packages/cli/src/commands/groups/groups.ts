// bullpen groups: lists, shows, creates, seals and cancels groups, adds members to them, and prints their members' results.
import { type GroupHandle, ProblemError, ResultTimeoutError } from '@bullpen/client'
import type { Duration, GroupView, MembersAdded } from '@bullpen/contract'
import { GROUP_KEEP, GROUP_ON_ERROR, GROUP_TOTAL_TIMEOUT, PAGINATION } from '@bullpen/contract/internal'
import { parseFollowUps } from '../../arguments/enqueue-options.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseDurationWithin,
  requireValue,
} from '../../arguments/option-values.ts'
import type { OptionName } from '../../arguments/options.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { MAX_REQUEST_BYTES } from '../../bulk/sender.ts'
import { openSource, readSource } from '../../bulk/source.ts'
import { readTaskLines, type TaskLine } from '../../bulk/task-lines.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { count, plain } from '../../output/format.ts'
import { namingLines } from '../../output/tasks/bulk-text.ts'
import { groupLines, groupListLines, memberLine } from '../../output/tasks/group-text.ts'
import type { CommandContext } from '../command-context.ts'
import { MAX_WAIT } from '../wait-for-task.ts'
import { GROUP_ACTIONS, type GroupActionName } from './groups-usage.ts'

interface Action {
  /** The options that the action accepts, in addition to those that every command accepts. */
  readonly options: readonly OptionName[]
  readonly needsId: boolean
  readonly run: (context: CommandContext, id: string) => Promise<ExitCode>
}

const ACTIONS: Readonly<Record<GroupActionName, Action>> = {
  list: { options: ['limit'], needsId: false, run: list },
  show: { options: ['wait'], needsId: true, run: show },
  create: {
    options: ['bulk', 'on-success', 'on-failure', 'on-end', 'on-error', 'total-timeout', 'keep', 'open', 'wait', 'by'],
    needsId: false,
    run: create,
  },
  add: { options: ['bulk', 'seal', 'wait'], needsId: true, run: add },
  seal: { options: ['wait'], needsId: true, run: seal },
  cancel: { options: ['wait', 'by'], needsId: true, run: cancel },
  results: { options: ['from', 'limit'], needsId: true, run: results },
}

const COMMON = ['api', 'key', 'json', 'help', 'version']

export async function groups(context: CommandContext): Promise<ExitCode> {
  const [word = 'list', id] = context.positionals
  const action = ACTIONS[parseChoice('ACTION', word, GROUP_ACTIONS)]
  if (action.needsId && id === undefined) throw new UsageError(`missing argument; expected bullpen groups ${word} ID`)
  if (!action.needsId && id !== undefined) {
    throw new UsageError(`unexpected argument '${id}'; 'bullpen groups ${word}' does not accept an id`)
  }
  const accepted: readonly string[] = [...action.options, ...COMMON]
  const extra = Object.keys(context.values).find((option) => !accepted.includes(option))
  if (extra !== undefined) throw new UsageError(`'bullpen groups ${word}' does not accept --${extra}`)
  return await action.run(context, id ?? '')
}

async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const limit = values.limit === undefined ? undefined : parseCount('--limit', values.limit, PAGINATION.max)
  const found = await connect().listGroups(limit === undefined ? {} : { limit })
  await out.answer({ groups: found }, (layout) => groupListLines(found, layout))
  if (found.length === 0) out.remark('every group has ended')
  return EXIT.success
}

async function show(context: CommandContext, id: string): Promise<ExitCode> {
  return await printGroup(context, context.connect().group(id))
}

async function create(context: CommandContext): Promise<ExitCode> {
  const { values, connect, by } = context
  const { 'on-error': onError, bulk, open = false } = values
  const totalTimeout = parseDurationWithin('--total-timeout', values['total-timeout'], GROUP_TOTAL_TIMEOUT)
  const keep = parseDurationWithin('--keep', values.keep, GROUP_KEEP)
  const settings = {
    ...(onError !== undefined && { onError: parseChoice('--on-error', onError, GROUP_ON_ERROR) }),
    ...(totalTimeout !== undefined && { totalTimeout }),
    ...(keep !== undefined && { keep }),
    ...(by !== undefined && { by }),
    ...parseFollowUps(values),
  }
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
  await group.cancel(by === undefined ? {} : { by })
  return await printGroup(context, group, 'any result')
}

async function results({ values, connect, out }: CommandContext, id: string): Promise<ExitCode> {
  const from = values.from === undefined ? 0 : parseCount('--from', values.from)
  const limit = values.limit === undefined ? Number.POSITIVE_INFINITY : parseCount('--limit', values.limit)
  let left = limit
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
  const found =
    wait === undefined ? await group.describe() : await endedOrCurrent(connect(WHILE_WAITING).group(group.id), wait)
  await out.answer(found, (layout) => groupLines(found, layout))
  if (wait === undefined) return EXIT.success
  return found.state === 'ended' && (expected === 'any result' || found.result === expected)
    ? EXIT.success
    : EXIT.incomplete
}

async function endedOrCurrent(group: GroupHandle, timeout: Duration): Promise<GroupView> {
  try {
    return await group.waitUntilEnded({ timeout })
  } catch (error) {
    if (!(error instanceof ResultTimeoutError)) throw error
    return await group.describe()
  }
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
