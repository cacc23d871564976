// Formats schedules as text, either in full or as a table.
import type { ScheduleSync, ScheduleView } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, type Field, fieldLines, plain, relativeTime, timeText } from '../format.ts'

/** Longer inputs are cut off. With --json they are printed in full. */
const MAX_VALUE_LENGTH = 1_000

export function scheduleListLines(schedules: readonly ScheduleView[], layout: Layout): readonly string[] {
  if (schedules.length === 0) return []
  const heading: Cell[] = ['name', 'times', 'task', 'next', 'last run', 'state']
  return tableLines([heading, ...schedules.map((schedule) => row(schedule, layout))], { ...layout, indent: 0 })
}

function row(schedule: ScheduleView, { now }: Layout): Cell[] {
  const { name, task, nextTicks, lastRun } = schedule
  const [next] = nextTicks
  const last = lastRun === undefined ? '' : `${lastRun.status ?? 'deleted'} ${relativeTime(lastRun.at, now)}`
  return [
    plain(name),
    timesText(schedule),
    plain(task),
    next === undefined ? '' : relativeTime(next, now),
    last,
    stateCell(schedule),
  ]
}

function stateCell({ status, trouble }: ScheduleView): Cell {
  const kinds = trouble.map(({ kind }) => kind.replaceAll('_', ' '))
  const text = [...(status === 'paused' ? ['paused'] : []), ...kinds].join(', ')
  if (kinds.length > 0) return ['red', text]
  return status === 'paused' ? ['yellow', text] : 'active'
}

function timesText({ cron, timeZone = 'UTC', every, offset }: ScheduleView): string {
  if (cron !== undefined) return `${plain(cron)} (${plain(timeZone)})`
  return `every ${every}${offset === undefined ? '' : `, offset ${offset}`}`
}

/** Returns the name and the state of a schedule, then one line for each field that the schedule has. */
export function scheduleLines(schedule: ScheduleView, { now, paint }: Layout): readonly string[] {
  const { status, lastRun, catchUp = 'one', waiting, trouble, nextTicks } = schedule
  const time = (of: string | undefined) => timeText(of, now)
  const rows: readonly Field[] = [
    ['times', timesText(schedule)],
    ['task', `${plain(schedule.task)}, queue ${plain(schedule.queue)}`],
    ['input', plain(JSON.stringify(schedule.input) ?? '', MAX_VALUE_LENGTH)],
    ['overlap', schedule.overlap],
    ['catch-up', typeof catchUp === 'string' ? catchUp : `the newest ${catchUp.max}`],
    ['jitter', schedule.jitter],
    ['source', schedule.source],
    ['changed', `${time(schedule.changedAt)}, by ${plain(schedule.changedBy)}`],
    ['paused', schedule.pausedAt && `${time(schedule.pausedAt)}, by ${plain(schedule.pausedBy ?? 'unknown')}`],
    ['runs', `${schedule.runs}, ${count(schedule.skipped, 'tick')} skipped`],
    ['missed', time(schedule.missedAt)],
    ['last run', lastRun && `${lastRun.id}  ${lastRun.status ?? 'deleted'}, ${time(lastRun.at)}`],
    ['waiting', waiting.length === 0 ? undefined : count(waiting.length, 'run')],
  ]
  return [
    `${plain(schedule.name)}  ${paint(status === 'paused' ? 'yellow' : 'green', status)}`,
    ...trouble.map(({ kind, since, detail }) =>
      paint('red', `${kind.replaceAll('_', ' ')} since ${since}: ${plain(detail)}`),
    ),
    ...fieldLines(rows, 8),
    ...nextTicks.map((tick, i) => `${(i === 0 ? 'next' : '').padEnd(8)}  ${time(tick)}`),
  ]
}

/** Returns a line for each schedule that differs, with the settings that differ. */
export function syncLines({ changes, dryRun }: ScheduleSync): readonly string[] {
  return changes
    .filter(({ action }) => action !== 'unchanged')
    .flatMap(({ name, queue, action, fields }) => [
      `${dryRun ? `would be ${action}` : action}  ${plain(name)} (queue ${plain(queue)})`,
      ...fields.map(({ field, from, to }) => `  ${plain(field)}: ${valueText(from)} → ${valueText(to)}`),
    ])
}

function valueText(value: unknown): string {
  return value === undefined ? 'not set' : plain(JSON.stringify(value), MAX_VALUE_LENGTH)
}
