// Formats tasks as text, either in full or as one line of a list.
import type { Accepted, Cancellation, Cancelled, TaskStatus, TaskView } from '@bullpen/contract'
import { WAIT_KINDS } from '@bullpen/contract/internal'
import type { Style } from '../colors.ts'
import { type Layout, tableLines } from '../columns.ts'
import { count, type Field, fieldLines, formatLength, plain, relativeTime, timeText } from '../format.ts'

/** Longer inputs and outputs are cut off. With --json they are printed in full. */
const MAX_VALUE_LENGTH = 1_000
const MAX_MESSAGE_LENGTH = 80

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

const coloured = (status: TaskStatus, { paint }: Layout): string => paint(STYLES[status], status)

export function acceptedLine(
  { id, action, status, expectedStartAt }: Pick<Accepted, 'id' | 'action' | 'status' | 'expectedStartAt'>,
  layout: Layout,
): string {
  const now = status === undefined ? 'deleted' : coloured(status, layout)
  // An estimate is rounded up to a second, so a task without a backlog would seem to wait.
  const isLater = expectedStartAt !== undefined && Date.parse(expectedStartAt) - layout.now >= 2_000
  const start = isLater ? `expected to start ${relativeTime(expectedStartAt, layout.now)}` : ''
  return [`${id}  ${now}`, ACTION_NOTES[action], start].filter(Boolean).join(', ')
}

const ACTION_NOTES: Readonly<Record<Accepted['action'], string>> = {
  created: '',
  existing: 'already stored',
  replaced: 'replaced the task that had the unique key',
  extended: 'already stored, start postponed',
}

export function cancelledLine({ id, outcome, status }: Cancelled, layout: Layout): string {
  const text = outcome.replaceAll('_', ' ')
  return `${id}  ${outcome === status ? text : `${text}, status ${coloured(status, layout)}`}`
}

export function cancellationLine({ id, status, ended, enqueuedUntil }: Cancellation): string {
  if (status === 'done')
    return `${id}  done: cancelled ${count(ended, 'task')} that had not started (enqueued until ${enqueuedUntil})`
  const soFar = ended === 0 ? '' : `; ${count(ended, 'task')} cancelled so far`
  return `${id}  in effect: no matching task enqueued until ${enqueuedUntil} will start${soFar}`
}

/** Returns one line for each field that the task has. The last field is the number of attempts, followed by one line for each. */
export function taskLines(task: TaskView, layout: Layout): string[] {
  const time = (of: string | undefined) => timeText(of, layout.now)
  const value = (of: unknown) => (of === undefined ? undefined : plain(JSON.stringify(of), MAX_VALUE_LENGTH))
  const { progress, error } = task
  const meta = Object.entries(task.meta)
    .map((entry) => entry.join('='))
    .join(', ')
  const rows: readonly Field[] = [
    ['task', `${plain(task.task)}, version ${task.version}`],
    ['queue', task.queue],
    ['priority', task.priority === 0 ? undefined : `${task.priority}`],
    ['enqueued', time(task.enqueuedAt)],
    ['due', time(task.dueAt)],
    ['started', time(task.startedAt)],
    ['ended', time(task.endedAt)],
    ['progress', progress && plain(`${Math.floor(progress.fraction * 100)}% ${progress.note ?? ''}`)],
    ['meta', meta === '' ? undefined : plain(meta)],
    ['tags', task.tags.length === 0 ? undefined : plain(task.tags.join(', '))],
    ['concurrency', task.concurrencyKey && plain(task.concurrencyKey)],
    ['waits for', task.waitsFor && waitText(task.waitsFor)],
    ['correlation', task.correlationId && plain(task.correlationId)],
    ['trace', task.traceContext && plain(task.traceContext.traceparent)],
    ['input', value(task.input)],
    ['output', value(task.output)],
    ['error', error && plain(`${error.code}: ${error.message}`)],
    ['retried', retriesText(task, layout)],
    ['retry of', task.retryOf],
    ['follow-up of', task.followUpOf],
    ['follow-ups', followUpsText(task)],
    ['undone by', compensationsText(task)],
    ['compensated', time(task.compensatedAt)],
    ['attempts', `${task.attemptsMade} of ${task.maxAttempts} used, ${task.fencingToken} started`],
  ]
  return [
    `${task.id}  ${coloured(task.status, layout)}`,
    ...fieldLines(rows, 11),
    ...attemptLines(task.attempts, layout),
  ]
}

/** Returns the text of the API. A later API may send kinds that are not known here, which the text alone would not show. */
function waitText({ kind, text }: NonNullable<TaskView['waitsFor']>): string {
  return plain(WAIT_KINDS.includes(kind) ? text : `${text} (${kind})`)
}

/** Describes who retried the task after it was dead, and when, such as `by ann 3 h ago, by bob 5 min ago`. */
function retriesText({ retries }: TaskView, { now }: Layout): string | undefined {
  return (
    retries &&
    plain(
      retries
        .map(({ at, by, copy }) => `by ${by} ${relativeTime(at, now)}${copy === undefined ? '' : ` as ${copy}`}`)
        .join(', '),
    )
  )
}

/** Describes the compensations in the order in which they would run, such as `card.refund, stock.release order-7`. */
function compensationsText({ compensations }: TaskView): string | undefined {
  const texts = compensations?.map(({ task, key }) => `${task} ${key}`.trimEnd())
  return texts && plain(texts.toReversed().join(', '))
}

/** Describes what is enqueued when the task ends, such as `mail.send on success, alert.raise on failure`. */
function followUpsText({ followUps }: TaskView): string | undefined {
  return followUps && plain(followUps.map(({ on, task }) => `${task} on ${on}`).join(', '))
}

/**
 * Returns a line for each attempt with its fencing token (or `not started`), outcome, error code, message, duration, worker,
 * and the user who cancelled it.
 */
function attemptLines(attempts: TaskView['attempts'], layout: Layout): readonly string[] {
  const rows = attempts.map((attempt) => [
    attempt.fencingToken === 0 ? 'not started' : String(attempt.fencingToken),
    plain(attempt.outcome),
    // For a cancelled attempt, the error code is the same as the outcome.
    attempt.error?.code === attempt.outcome ? '' : plain(attempt.error?.code ?? ''),
    plain(attempt.error?.message ?? '', MAX_MESSAGE_LENGTH),
    formatLength(Date.parse(attempt.endedAt) - Date.parse(attempt.startedAt)),
    plain(attempt.worker),
    attempt.by === undefined ? '' : `by ${plain(attempt.by)}`,
  ])
  return tableLines(rows, { paint: layout.paint, indent: 2 })
}

/**
 * Formats a task as one line of a list. The columns have fixed widths, because each page is printed before the next one arrives.
 */
export function listLine(task: TaskView, { now }: Layout): string {
  const attempts = `${task.attemptsMade}/${task.maxAttempts}`.padStart(5)
  const error = task.error === undefined ? '' : `  ${plain(task.error.code)}`
  return `${task.id}  ${attempts}  ${relevantTime(task, now).padEnd(19)}  ${plain(task.task)}${error}`
}

/** Returns the time that matters most for the task's status. */
function relevantTime({ dueAt, endedAt, startedAt, enqueuedAt, status }: TaskView, now: number): string {
  if (endedAt !== undefined) return `ended ${relativeTime(endedAt, now)}`
  if (dueAt !== undefined) return `due ${relativeTime(dueAt, now)}`
  if (status === 'active' && startedAt !== undefined) return `started ${relativeTime(startedAt, now)}`
  return `enqueued ${relativeTime(enqueuedAt, now)}`
}
