// Formats groups and their members as text.
import type { GroupView, MemberResult } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, type Field, fieldLines, plain, relativeTime, timeText } from '../format.ts'

const STYLES = { completed: 'green', failed: 'red', cancelled: 'yellow' } as const

export function groupListLines(groups: readonly GroupView[], layout: Layout): readonly string[] {
  if (groups.length === 0) return []
  const heading: Cell[] = ['id', 'state', 'ended', 'created', 'queues']
  const rows = groups.map((group): Cell[] => [
    plain(group.id),
    stateText(group),
    `${group.ended} of ${group.count}`,
    relativeTime(group.createdAt, layout.now),
    plain(group.queues.join(', ')),
  ])
  return tableLines([heading, ...rows], { ...layout, indent: 0 })
}

function stateText({ state, result, cancelledAt }: GroupView): string {
  if (state !== 'ended') return cancelledAt === undefined ? state : 'cancelling'
  return result ?? state
}

/** Returns the id and the state of a group, then one line for each field that the group has. */
export function groupLines(group: GroupView, { now, paint }: Layout): readonly string[] {
  const { statuses, result, cancelledAt, cancelReason, cancelledBy } = group
  const time = (of: string | undefined) => timeText(of, now)
  const ended = Object.entries(statuses).flatMap(([status, number]) => (number === 0 ? [] : [`${number} ${status}`]))
  const reason = (cancelReason ?? '').replaceAll('_', ' ')
  const rows: readonly Field[] = [
    [
      'members',
      `${count(group.count, 'member')}, ${group.ended} ended${ended.length === 0 ? '' : `: ${ended.join(', ')}`}`,
    ],
    ['queues', plain(group.queues.join(', '))],
    ['on error', group.onError],
    ['created', `${time(group.createdAt)}, by ${plain(group.by)}`],
    ['timeout', group.endedAt === undefined ? time(group.timeoutAt) : undefined],
    ['sealed', time(group.sealedAt)],
    ['cancelled', cancelledAt && `${time(cancelledAt)}, ${plain(reason)}, by ${plain(cancelledBy ?? 'unknown')}`],
    ['ended', time(group.endedAt)],
  ]
  const state = stateText(group)
  return [
    `${plain(group.id)}  ${result === undefined ? state : paint(STYLES[result] ?? 'yellow', state)}`,
    ...fieldLines(rows, 9),
  ]
}

export function memberLine({ member, id, status, error, deleted }: MemberResult, { paint }: Layout): string {
  const shown = status === 'dead' || status === 'expired' ? paint('red', status) : status
  const about = error === undefined ? '' : `  ${plain(error.code)}: ${plain(error.message)}`
  return `${String(member).padStart(6)}  ${plain(id)}  ${shown}${about}${deleted ? '  (the task has been deleted)' : ''}`
}
