// Formats dead tasks, their counts by kind of error, and the requests that change them as text.
import type { DeadTaskRequest, FingerprintCounts, TaskView } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from './columns.ts'
import { count as counted, plain, relativeTime } from './format.ts'

const MAX_MESSAGE_LENGTH = 80
const FINGERPRINT_LENGTH = 16

/** Formats a dead task as one line, such as `ID  FINGERPRINT  ended 3h ago  mail.send  gone: no customer 7`. */
export function deadLine({ id, task, fingerprint = '', endedAt, error }: TaskView, { now }: Layout): string {
  const ended = endedAt === undefined ? '' : `ended ${relativeTime(endedAt, now)}`
  const why = error === undefined ? '' : plain(`${error.code}: ${error.message}`, MAX_MESSAGE_LENGTH)
  return `${id}  ${fingerprint.padEnd(FINGERPRINT_LENGTH)}  ${ended.padEnd(15)}  ${plain(task)}  ${why}`.trimEnd()
}

/** Returns a line for each kind of error: the count, the fingerprint, the queue, the code, when the last task died, and the message. */
export function countLines(fingerprints: FingerprintCounts['fingerprints'], { now, paint }: Layout): readonly string[] {
  const rows = fingerprints.map(({ count, fingerprint, queue, code, newestAt, message }) => [
    String(count),
    fingerprint,
    plain(queue),
    plain(code),
    relativeTime(newestAt, now),
    plain(message, MAX_MESSAGE_LENGTH),
  ])
  return tableLines(rows, { paint, indent: 0 })
}

/** Describes a request by filter, such as `ID  done: retried 12 tasks` or `ID  pending: retried 3 of 12 tasks so far`. */
export function deadRequestLine({ id, action, status, changed, matching, exact }: DeadTaskRequest): string {
  const done = action === 'retry' ? 'retried' : 'deleted'
  if (status === 'done') return `${id}  done: ${done} ${counted(changed, 'task')}`
  return `${id}  pending: ${done} ${changed} of ${exact ? '' : 'at least '}${counted(matching, 'task')} so far`
}

/** Returns a line for each request by filter: the time, the status, how many tasks it has changed, the filter, the sender, and the id. */
export function deadRequestRows(requests: readonly DeadTaskRequest[], { paint, columns }: Layout): readonly string[] {
  const rows = requests.map((request): Cell[] => {
    const { id, action, status, changed, matching, exact, by, requestedAt } = request
    return [
      requestedAt.replace(/\.\d+Z$/, 'Z'),
      [status === 'done' ? 'green' : 'yellow', status],
      `${action === 'retry' ? 'retried' : 'deleted'} ${changed} of ${exact ? '' : 'at least '}${counted(matching, 'task')}`,
      plain(filterText(request)),
      plain(by),
      id,
    ]
  })
  return tableLines(rows, { paint, columns, indent: 0 })
}

/** Describes which tasks a request selects, such as `mail, code gone, tag batch:7`. */
function filterText(request: DeadTaskRequest): string {
  const { queue, task, state, code, tag, fingerprint, text, endedFrom, endedUntil } = request
  const given = { task, state, code, tag, fingerprint, text, 'died from': endedFrom, 'died until': endedUntil }
  const parts = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
  return [queue, ...parts].join(', ')
}
