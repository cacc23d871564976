// Formats the queues as a table: their tasks by status, the oldest waiting task, rates, slots and limits.
import type { QueuePage, QueueStats } from '@bullpen/contract'
import { type Cell, type Layout, tableLines } from './columns.ts'
import { queueStateCell } from './fleet-text.ts'
import { formatLength, plain } from './format.ts'

/** The statuses with a column of their own. The API also returns how many tasks are completed, cancelled and expired. */
const SHOWN = ['waiting', 'active', 'scheduled', 'retrying', 'dead'] as const

/** Times are relative to Redis's clock, not to this machine's. */
export function queueLines(page: QueuePage, given: Layout): readonly string[] {
  const layout = { ...given, now: Date.parse(page.now), indent: 0 }
  const heading = ['queue', ...SHOWN, 'oldest', 'in/s', 'out/s', 'busy', 'state']
  return tableLines([heading, ...page.queues.map((queue) => queueRow(queue, layout.now))], layout)
}

function queueRow(stats: QueueStats, now: number): Cell[] {
  const { queue, tasks, oldestWaiting, rates, busy, slots } = stats
  return [
    plain(queue),
    ...SHOWN.map((status): Cell => {
      const count = String(tasks[status])
      return status === 'dead' && tasks.dead > 0 ? ['red', count] : count
    }),
    oldestWaiting === undefined ? '-' : formatLength(Math.max(0, now - Date.parse(oldestWaiting.enqueuedAt))),
    String(rates.in),
    String(rates.out),
    `${busy}/${slots}`,
    queueStateCell(stats, now),
  ]
}
