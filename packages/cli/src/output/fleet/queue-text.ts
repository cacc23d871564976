// Formats the queues as a table: their tasks by status, the oldest waiting task, rates, slots and limits. A second table shows the
// most frequent kinds of error of the dead tasks.
import type { QueuePage, QueueStats } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { formatLength, plain } from '../format.ts'
import { queueStateCell } from './fleet-text.ts'

/** The statuses with a column of their own. The API also returns how many tasks are completed, cancelled and expired. */
const SHOWN = ['waiting', 'active', 'scheduled', 'retrying', 'dead'] as const
/** How many kinds of error are shown for each queue. */
const KINDS_SHOWN = 3
const MAX_MESSAGE_LENGTH = 60

/** Times are relative to Redis's clock, not to this machine's. */
export function queueLines({ now, queues }: QueuePage, given: Layout): readonly string[] {
  const layout = { ...given, now: Date.parse(now), indent: 0 }
  const heading = ['queue', ...SHOWN, 'oldest', 'in/s', 'out/s', 'busy', 'state']
  const kinds = queues.flatMap(kindRows)
  return [
    ...tableLines([heading, ...queues.map((queue) => queueRow(queue, layout.now))], layout),
    ...(kinds.length === 0 ? [] : ['', ...tableLines([['queue', 'dead', 'fingerprint', 'error'], ...kinds], layout)]),
  ]
}

function queueRow(stats: QueueStats, now: number): Cell[] {
  const { queue, tasks, oldestWaiting, rates, busy, slots } = stats
  return [
    plain(queue),
    ...SHOWN.map((status): Cell => {
      const count = String(tasks[status])
      return status === 'dead' && tasks.dead > 0 ? ['red', count] : count
    }),
    oldestWaiting === undefined ? '-' : formatLength(Math.max(0, now - Date.parse(oldestWaiting.readyAt))),
    String(rates.in),
    String(rates.out),
    `${busy}/${slots}`,
    queueStateCell(stats, now),
  ]
}

/** Returns a row for each of the most frequent kinds of error, and one for all other dead tasks. */
function kindRows({ queue, tasks, deadByFingerprint }: QueueStats): Cell[][] {
  const shown = deadByFingerprint.slice(0, KINDS_SHOWN)
  // The counts may be from different moments.
  const others = Math.max(0, tasks.dead - shown.reduce((sum, { count }) => sum + count, 0))
  const rows = shown.map(({ count, fingerprint, code, message }) => [
    plain(queue),
    String(count),
    fingerprint,
    plain(`${code}: ${plain(message, MAX_MESSAGE_LENGTH)}`),
  ])
  return others === 0 ? rows : [...rows, [plain(queue), String(others), 'others', '']]
}
