// Formats dead tasks, their counts by kind of error, and the requests that change them as text.
import type { DeadTaskAction, DeadTaskRequest, FingerprintCounts, TaskView } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count as counted, plain, relativeTime } from '../format.ts'

const MAX_MESSAGE_LENGTH = 80
const FINGERPRINT_LENGTH = 16
const DONE = { retry: 'retried', delete: 'deleted' } as const satisfies Record<DeadTaskAction, string>

/** Formats a dead task as one line, such as `ID  FINGERPRINT  ended 3h ago  mail.send  gone: no customer 7`. */
export function deadLine({ id, task, fingerprint = '', endedAt, error }: TaskView, { now }: Layout): string {
  const ended = endedAt === undefined ? '' : `ended ${relativeTime(endedAt, now)}`
  const why = error === undefined ? '' : plain(`${error.code}: ${error.message}`, MAX_MESSAGE_LENGTH)
  return `${id}  ${fingerprint.padEnd(FINGERPRINT_LENGTH)}  ${ended.padEnd(15)}  ${plain(task)}  ${why}`.trimEnd()
}

/** Returns a table with a line for each kind of error. `newest` is when the last of its tasks died. */
export function countLines(fingerprints: FingerprintCounts['fingerprints'], { now, paint }: Layout): readonly string[] {
  if (fingerprints.length === 0) return []
  const rows = fingerprints.map(({ count, fingerprint, queue, code, newestAt, message }) => [
    String(count),
    fingerprint,
    plain(queue),
    plain(code),
    relativeTime(newestAt, now),
    plain(message, MAX_MESSAGE_LENGTH),
  ])
  return tableLines([['count', 'fingerprint', 'queue', 'code', 'newest', 'message'], ...rows], { paint, indent: 0 })
}

/** Describes a request by filter, such as `ID  done: retried 12 tasks` or `ID  pending: retried 3 of 12 tasks so far`. */
export function deadRequestLine(request: DeadTaskRequest): string {
  const { id, action, status, changed } = request
  if (status === 'done') return `${id}  done: ${DONE[action]} ${counted(changed, 'task')}`
  return `${id}  ${status}: ${changedText(request)}${status === 'pending' ? ' so far' : ''}`
}

/** Describes how many tasks a request has changed, such as `retried 3 of 12 tasks`. */
function changedText({ action, changed, matching, exact }: DeadTaskRequest): string {
  return `${DONE[action]} ${changed} of ${exact ? '' : 'at least '}${counted(matching, 'task')}`
}

/** Returns a table with a line for each request by filter. `tasks` is how many of the matching tasks it has changed. */
export function deadRequestRows(requests: readonly DeadTaskRequest[], { paint, columns }: Layout): readonly string[] {
  if (requests.length === 0) return []
  const rows = requests.map((request): Cell[] => {
    const { id, status, by, requestedAt } = request
    return [
      requestedAt.replace(/\.\d+Z$/, 'Z'),
      [status === 'done' ? 'green' : 'yellow', status],
      changedText(request),
      plain(filterText(request)),
      plain(by),
      id,
    ]
  })
  return tableLines([['requested', 'status', 'tasks', 'filter', 'by', 'id'], ...rows], { paint, columns, indent: 0 })
}

/** Describes which tasks a request selects, such as `mail, code gone, tag batch:7`. */
function filterText(request: DeadTaskRequest): string {
  const { queue, task, state, code, tag, fingerprint, text, endedFrom, endedUntil } = request
  const given = { task, state, code, tag, fingerprint, text, 'died from': endedFrom, 'died until': endedUntil }
  const parts = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
  return [queue, ...parts].join(', ')
}
