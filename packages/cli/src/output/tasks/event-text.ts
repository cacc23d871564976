// Formats the events of tasks as lines of text.
import type { GroupStreamEvent, QueueEvent, TaskStreamEvent } from '@bullpen/client'
import type { StreamedEvent } from '@bullpen/contract'
import type { Style } from '../colors.ts'
import type { Layout } from '../columns.ts'
import { plain } from '../format.ts'
import { groupLines } from './group-text.ts'

const MAX_TEXT_LENGTH = 1_000

const STYLES: Readonly<Record<StreamedEvent['type'], Style>> = {
  enqueued: 'blue',
  started: 'cyan',
  progress: 'cyan',
  log: 'cyan',
  retrying: 'yellow',
  requeued: 'yellow',
  ended: 'green',
  retry_requested: 'blue',
}

/** Returns the lines of an event. With `showTask`, the line also names the task. */
export function eventLines(
  event: TaskStreamEvent | GroupStreamEvent | QueueEvent,
  layout: Layout,
  showTask: boolean,
): readonly string[] {
  const { paint } = layout
  if (event.type === 'gap') return [paint('yellow', 'some events are no longer kept and are missing here')]
  if (event.type === 'group_ended') return groupLines(event.group, layout)
  if (event.type === 'snapshot') {
    if ('group' in event) return groupLines(event.group, layout)
    if ('task' in event) return [`${event.task.id}  ${event.task.task}  ${event.task.status}`]
    return Object.entries(event.queues).map(([queue, counts]) => {
      const some = Object.entries(counts).filter(([, tasks]) => tasks > 0)
      return `${queue}  ${some.map(([status, tasks]) => `${tasks} ${status}`).join(', ') || 'no tasks'}`
    })
  }
  const style = event.type === 'ended' && event.status !== 'completed' ? 'red' : STYLES[event.type]
  const about = showTask ? [event.taskId, event.task] : []
  return [
    [clockTime(event.at), ...about, paint(style, event.type.replaceAll('_', ' ')), detailOf(event)]
      .filter(Boolean)
      .join('  '),
  ]
}

function clockTime(at: string): string {
  return at.slice(11, 23)
}

function detailOf(event: StreamedEvent): string {
  switch (event.type) {
    case 'enqueued':
      return event.dueAt === undefined ? '' : `due at ${event.dueAt}`
    case 'started':
      return `attempt ${event.attempt} on ${plain(event.worker, MAX_TEXT_LENGTH)}`
    case 'progress':
      return [`${Math.round(event.fraction * 100)} %`, plain(event.note ?? '', MAX_TEXT_LENGTH)]
        .filter(Boolean)
        .join('  ')
    case 'log': {
      const fields = event.fields === undefined ? '' : JSON.stringify(event.fields)
      return [event.level, plain(event.message, MAX_TEXT_LENGTH), plain(fields, MAX_TEXT_LENGTH)]
        .filter(Boolean)
        .join('  ')
    }
    case 'retrying':
      return `${endText(event)}, next attempt at ${event.dueAt}`
    case 'requeued':
      return event.dueAt === undefined ? endText(event) : `${endText(event)}, due at ${event.dueAt}`
    case 'ended':
      return [event.status, errorText(event), event.by === undefined ? '' : `by ${plain(event.by)}`]
        .filter(Boolean)
        .join('  ')
    case 'retry_requested':
      return `by ${plain(event.by)}`
  }
}

type End = Pick<Extract<StreamedEvent, { type: 'retrying' }>, 'attempt' | 'outcome' | 'error'>

function endText(event: End): string {
  return [`attempt ${event.attempt} ${event.outcome ?? 'ended'}`, errorText(event)].filter(Boolean).join('  ')
}

function errorText({ error }: Pick<End, 'error'>): string {
  return error === undefined ? '' : `${plain(error.code)}: ${plain(error.message, MAX_TEXT_LENGTH)}`
}
