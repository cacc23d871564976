// bullpen schedules: lists, shows, stores, pauses, resumes, runs and deletes schedules, and syncs them with the API's catalogue.
import type { CatchUp, ScheduleRequest, ScheduleView } from '@bullpen/contract'
import { MAX_NEXT_RUNS, OVERLAPS, PAGINATION } from '@bullpen/contract/internal'
import { parseEnqueueOptions } from '../../arguments/enqueue-options.ts'
import { readInput } from '../../arguments/json-input.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  requireValue,
  withoutUndefined,
} from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { plain } from '../../output/format.ts'
import { scheduleLines, scheduleListLines, syncLines } from '../../output/tasks/schedule-text.ts'
import { acceptedLine } from '../../output/tasks/task-text.ts'
import { type Action, runAction } from '../actions.ts'
import type { CommandContext } from '../command-context.ts'
import { SETTINGS_OPTIONS } from './schedules-usage.ts'

const ACTIONS = {
  list: { options: ['trouble', 'next'], usage: '', run: list },
  show: { options: ['next'], usage: 'NAME', run: show },
  put: { options: [...SETTINGS_OPTIONS, 'by'], usage: 'NAME', run: put },
  pause: { options: ['by'], usage: 'NAME', run: change('pause') },
  resume: { options: ['by'], usage: 'NAME', run: change('resume') },
  run: { options: ['by'], usage: 'NAME', run },
  delete: { options: ['by'], usage: 'NAME', run: remove },
  sync: { options: ['dry-run', 'by'], usage: '', run: sync },
} as const satisfies Readonly<Record<string, Action>>

export async function schedules(context: CommandContext): Promise<ExitCode> {
  return await runAction('schedules', ACTIONS, context)
}

async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const next = parseCount('--next', values.next, MAX_NEXT_RUNS)
  const { trouble = false } = values
  const options = withoutUndefined({ next, trouble: trouble || undefined, pageSize: PAGINATION.max })
  const found: ScheduleView[] = []
  for await (const schedule of connect().schedules.list(options)) found.push(schedule)
  await out.answer({ schedules: found }, (layout) => scheduleListLines(found, layout))
  if (found.length === 0) out.remark(trouble ? 'no schedule is in trouble' : 'there are no schedules')
  return EXIT.success
}

async function show({ values, connect, out }: CommandContext, name: string): Promise<ExitCode> {
  const next = parseCount('--next', values.next, MAX_NEXT_RUNS)
  const schedule = await connect().schedules.show(name, withoutUndefined({ next }))
  await out.answer(schedule, (layout) => scheduleLines(schedule, layout))
  return EXIT.success
}

async function put({ values, connect, out, by, stdin }: CommandContext, name: string): Promise<ExitCode> {
  const task = requireValue('--task TASK', values.task)
  const { cron } = values
  const settings = withoutUndefined({
    name,
    ...parseEnqueueOptions(values),
    cron,
    timeZone: values['time-zone'],
    every: parseDuration('--every', values.every),
    offset: parseDuration('--offset', values.offset),
    jitter: parseDuration('--jitter', values.jitter),
    overlap: parseChoice('--overlap', values.overlap, OVERLAPS),
    catchUp: parseCatchUp(values['catch-up']),
  })
  if (cron === undefined && values.every === undefined) throw new UsageError('missing option --cron or --every')
  const client = connect()
  const request: ScheduleRequest = { ...settings, task, input: await readInput('--input', values.input, stdin) }
  const stored = await client.schedules.store(request, withoutUndefined({ by }))
  await out.answer(stored, (layout) => [
    `${plain(name)}  ${stored.action}`,
    ...scheduleLines(stored.schedule, layout).slice(1),
  ])
  return EXIT.success
}

function change(verb: 'pause' | 'resume') {
  return async ({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> => {
    const schedule = await connect().schedules[verb](name, withoutUndefined({ by }))
    await out.answer(schedule, (layout) => scheduleLines(schedule, layout).slice(0, 1))
    return EXIT.success
  }
}

async function run({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> {
  const accepted = await connect().schedules.run(name, withoutUndefined({ by }))
  await out.answer(accepted, (layout) => [acceptedLine(accepted, layout)])
  return EXIT.success
}

async function remove({ connect, out, by }: CommandContext, name: string): Promise<ExitCode> {
  const deleted = await connect().schedules.delete(name, withoutUndefined({ by }))
  await out.answer(deleted, () => [`${plain(name)}  deleted`])
  return EXIT.success
}

async function sync({ values, connect, out, by }: CommandContext): Promise<ExitCode> {
  const { 'dry-run': dryRun = false } = values
  const result = await connect().schedules.sync(withoutUndefined({ by, dryRun }))
  await out.answer(result, () => syncLines(result))
  const differs = result.changes.some(({ action }) => action !== 'unchanged')
  if (!differs) out.remark("the stored schedules match the catalogue's")
  return dryRun && differs ? EXIT.incomplete : EXIT.success
}

function parseCatchUp(text: string | undefined): CatchUp | undefined {
  if (text === undefined || text === 'skip' || text === 'one') return text
  if (/^\d+$/.test(text)) return { max: parseCount('--catch-up', text, 100) }
  throw new UsageError(`--catch-up is '${text}'; expected skip, one, or a whole number from 1 to 100`)
}
