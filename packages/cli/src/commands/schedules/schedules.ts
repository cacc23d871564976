// bullpen schedules: lists, shows, stores, pauses, resumes, runs and deletes schedules, and syncs them with the API's catalogue.
import type { ScheduleSettings } from '@bullpen/client'
import type { CatchUp, ScheduleRequest, ScheduleView } from '@bullpen/contract'
import { MAX_NEXT_RUNS, OVERLAPS, PAGINATION } from '@bullpen/contract/internal'
import { parseEnqueueOptions } from '../../arguments/enqueue-options.ts'
import { readInput } from '../../arguments/json-input.ts'
import { parseChoice, parseCount, parseDuration, requireValue } from '../../arguments/option-values.ts'
import { COMMON_OPTIONS, type OptionName } from '../../arguments/options.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { plain } from '../../output/format.ts'
import { scheduleLines, scheduleListLines, syncLines } from '../../output/tasks/schedule-text.ts'
import { acceptedLine } from '../../output/tasks/task-text.ts'
import type { CommandContext } from '../command-context.ts'
import { SCHEDULE_ACTIONS, type ScheduleActionName, SETTINGS_OPTIONS } from './schedules-usage.ts'

interface Action {
  /** The options that the action accepts, in addition to those that every command accepts. */
  readonly options: readonly OptionName[]
  readonly needsName: boolean
  readonly run: (context: CommandContext, name: string) => Promise<ExitCode>
}

const ACTIONS: Readonly<Record<ScheduleActionName, Action>> = {
  list: { options: ['trouble', 'next'], needsName: false, run: list },
  show: { options: ['next'], needsName: true, run: show },
  put: {
    options: [...SETTINGS_OPTIONS, 'by'],
    needsName: true,
    run: put,
  },
  pause: { options: ['by'], needsName: true, run: change('pause') },
  resume: { options: ['by'], needsName: true, run: change('resume') },
  run: { options: ['by'], needsName: true, run },
  delete: { options: ['by'], needsName: true, run: remove },
  sync: { options: ['dry-run', 'by'], needsName: false, run: sync },
}

export async function schedules(context: CommandContext): Promise<ExitCode> {
  const [word = 'list', name] = context.positionals
  const action = ACTIONS[parseChoice('ACTION', word, SCHEDULE_ACTIONS)]
  if (action.needsName && name === undefined) {
    throw new UsageError(`missing argument; expected bullpen schedules ${word} NAME`)
  }
  if (!action.needsName && name !== undefined) {
    throw new UsageError(`unexpected argument '${name}'; 'bullpen schedules ${word}' does not accept a name`)
  }
  const accepted: readonly string[] = [...action.options, ...COMMON_OPTIONS]
  const extra = Object.keys(context.values).find((option) => !accepted.includes(option))
  if (extra !== undefined) throw new UsageError(`'bullpen schedules ${word}' does not accept --${extra}`)
  return await action.run(context, name ?? '')
}

async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const next = nextOf(values.next)
  const { trouble = false } = values
  const options = { ...(next !== undefined && { next }), ...(trouble && { trouble }), pageSize: PAGINATION.max }
  const found: ScheduleView[] = []
  for await (const schedule of connect().schedules.list(options)) found.push(schedule)
  await out.answer({ schedules: found }, (layout) => scheduleListLines(found, layout))
  if (found.length === 0) out.remark(trouble ? 'no schedule is in trouble' : 'there are no schedules')
  return EXIT.success
}

async function show({ values, connect, out }: CommandContext, name: string): Promise<ExitCode> {
  const next = nextOf(values.next)
  const schedule = await connect().schedules.show(name, next === undefined ? {} : { next })
  await out.answer(schedule, (layout) => scheduleLines(schedule, layout))
  return EXIT.success
}

async function put({ values, connect, out, by, stdin }: CommandContext, name: string): Promise<ExitCode> {
  const task = requireValue('--task TASK', values.task)
  const { overlap, cron, 'time-zone': timeZone } = values
  const settings = {
    name,
    ...parseEnqueueOptions(values),
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
    ...durationIn('every', values.every),
    ...durationIn('offset', values.offset),
    ...durationIn('jitter', values.jitter),
    ...(overlap !== undefined && { overlap: parseChoice('--overlap', overlap, OVERLAPS) }),
    ...catchUpIn(values['catch-up']),
  }
  if (cron === undefined && values.every === undefined) throw new UsageError('missing option --cron or --every')
  const client = connect()
  const request: ScheduleRequest = { ...settings, task, input: await readInput('--input', values.input, stdin) }
  const stored = await client.schedules.store(request, byOf(by))
  await out.answer(stored, (layout) => [
    `${plain(name)}  ${stored.action}`,
    ...scheduleLines(stored.schedule, layout).slice(1),
  ])
  return EXIT.success
}

function change(verb: 'pause' | 'resume') {
  return async ({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> => {
    const schedule = await connect().schedules[verb](name, byOf(by))
    await out.answer(schedule, (layout) => scheduleLines(schedule, layout).slice(0, 1))
    return EXIT.success
  }
}

async function run({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> {
  const accepted = await connect().schedules.run(name, byOf(by))
  await out.answer(accepted, (layout) => [acceptedLine(accepted, layout)])
  return EXIT.success
}

async function remove({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> {
  const deleted = await connect().schedules.delete(name, byOf(by))
  await out.answer(deleted, () => [`${plain(name)}  deleted`])
  return EXIT.success
}

async function sync({ values, connect, out, by }: CommandContext): Promise<ExitCode> {
  const { 'dry-run': dryRun = false } = values
  const result = await connect().schedules.sync({ ...byOf(by), dryRun })
  await out.answer(result, () => syncLines(result))
  const differs = result.changes.some(({ action }) => action !== 'unchanged')
  if (!differs) out.remark("the stored schedules match the catalogue's")
  return dryRun && differs ? EXIT.incomplete : EXIT.success
}

function nextOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseCount('--next', text, MAX_NEXT_RUNS)
}

function durationIn<N extends 'every' | 'offset' | 'jitter'>(name: N, text: string | undefined) {
  const duration = parseDuration(`--${name}`, text)
  return (duration === undefined ? {} : { [name]: duration }) as Pick<ScheduleSettings, N>
}

function catchUpIn(text: string | undefined): { readonly catchUp?: CatchUp } {
  if (text === undefined) return {}
  if (text === 'skip' || text === 'one') return { catchUp: text }
  if (/^\d+$/.test(text)) return { catchUp: { max: parseCount('--catch-up', text, 100) } }
  throw new UsageError(`--catch-up is '${text}'; expected skip, one, or a whole number from 1 to 100`)
}

function byOf(by: string | undefined): { readonly by?: string } {
  return by === undefined ? {} : { by }
}
