// A task as people read it: in lines, and in one line of a list.
import type { Accepted, Cancellation, Cancelled, TaskStatus, TaskView } from '@bullpen/contract'
import type { Paint, Style } from './colors.ts'
import { lengthOf, plain, relative } from './format.ts'

/** Longer inputs and outputs are for --json. */
const LONGEST_VALUE = 1_000
const LONGEST_MESSAGE = 80

const STYLES: Readonly<Record<TaskStatus, Style>> = {
  scheduled: 'blue',
  waiting: 'blue',
  active: 'cyan',
  retrying: 'yellow',
  completed: 'green',
  dead: 'red',
  cancelled: 'yellow',
  expired: 'yellow',
}

/** Of what is being shown: the time now, in ms since 1970, and how to colour. */
export interface Look {
  readonly now: number
  readonly paint: Paint
  /** How wide the terminal is; as wide as need be unless it is said. */
  readonly columns?: number | undefined
}

const status = (of: TaskStatus, { paint }: Look): string => paint(STYLES[of], of)

export function acceptedLine(accepted: Accepted, look: Look): string {
  return `${accepted.id}  ${status(accepted.status, look)}`
}

export function cancelledLine({ id, outcome, status: now }: Cancelled, look: Look): string {
  return `${id}  ${outcome}${outcome === now ? '' : `, it is ${status(now, look)}`}`
}

export function cancellationLine({ id, status: now, ended, enqueuedUntil }: Cancellation): string {
  return `${id}  ${now}, ${ended} ended that nobody ran, covers what was enqueued until ${enqueuedUntil}`
}

/** The task in lines; what it does not have is left out. */
export function taskLines(task: TaskView, look: Look): string[] {
  const time = (of: string | undefined) => of && `${of} (${relative(of, look.now)})`
  const value = (of: unknown) => (of === undefined ? undefined : plain(JSON.stringify(of), LONGEST_VALUE))
  const { progress, error, state, reason } = task
  const labels = Object.entries(task.meta)
    .map((entry) => entry.join('='))
    .join(', ')
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['task', `${plain(task.task)}, version ${task.version}`],
    ['queue', task.queue],
    ['state', state && [state, reason].filter(Boolean).join(', ')],
    ['attempts', `${task.attemptsMade} of ${task.maxAttempts}, starts ${task.fencingToken}`],
    ['enqueued', time(task.enqueuedAt)],
    ['due', time(task.dueAt)],
    ['started', time(task.startedAt)],
    ['ended', time(task.endedAt)],
    ['progress', progress && plain(`${Math.floor(progress.fraction * 100)} % ${progress.note ?? ''}`)],
    ['meta', labels === '' ? undefined : plain(labels)],
    ['tags', task.tags.length === 0 ? undefined : plain(task.tags.join(', '))],
    ['correlation', task.correlationId && plain(task.correlationId)],
    ['input', value(task.input)],
    ['output', value(task.output)],
    ['error', error && plain(`${error.code}: ${error.message}`)],
  ]
  const there = rows.flatMap(([name, text]) => (text === undefined ? [] : [`${name.padEnd(11)}  ${text}`]))
  return [`${task.id}  ${status(task.status, look)}`, ...there, ...historyLines(task.attempts)]
}

/** Each attempt's end on a line: start, state, reason, message, duration, worker. */
function historyLines(history: TaskView['attempts']): string[] {
  const cells = history.map((end) => [
    String(end.fencingToken),
    end.state,
    plain(end.reason ?? end.code ?? ''),
    plain(end.message ?? '', LONGEST_MESSAGE),
    lengthOf(Date.parse(end.endedAt) - Date.parse(end.startedAt)),
    plain(end.worker),
  ])
  return cells.length === 0 ? [] : ['history', ...table(cells)]
}

/** Columns that nothing is in are left out. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row.flatMap((cell, i) => (widths[i] === 0 ? [] : [cell.padEnd(widths[i] ?? 0)])).join('  ')
  return rows.map((row) => `  ${line(row)}`.trimEnd())
}

/** Columns of fixed width first: lines are written as they come, page by page. */
export function listLine(task: TaskView, { now }: Look): string {
  const attempts = `${task.attemptsMade}/${task.maxAttempts}`.padStart(5)
  const error = task.error === undefined ? '' : `  ${plain(task.error.code)}`
  return `${task.id}  ${attempts}  ${telling(task, now).padEnd(19)}  ${plain(task.task)}${error}`
}

/** The time that matters in this status. */
function telling({ dueAt, endedAt, startedAt, enqueuedAt, status: is }: TaskView, now: number): string {
  if (endedAt !== undefined) return `ended ${relative(endedAt, now)}`
  if (dueAt !== undefined) return `due ${relative(dueAt, now)}`
  if (is === 'active' && startedAt !== undefined) return `started ${relative(startedAt, now)}`
  return `enqueued ${relative(enqueuedAt, now)}`
}
