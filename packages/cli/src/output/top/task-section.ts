// Shows the running tasks in bullpen top, beginning with the one that has been running for the longest time.
import type { SlotView } from '@bullpen/contract'
import type { Snapshot } from '../../commands/top/snapshot.ts'
import type { Cell } from '../columns.ts'
import { formatLength, plain } from '../format.ts'
import { by, type Section, section } from './section.ts'

export function taskSection({ now: time, running }: Snapshot): Section {
  const now = Date.parse(time)
  return section({
    rows: running.toSorted(
      by(
        ({ since }) => Date.parse(since),
        ({ task }) => task?.id ?? '',
      ),
    ),
    columns: [
      {
        heading: 'running',
        align: 'right',
        cell: ({ since }) => formatLength(Math.max(0, now - Date.parse(since))),
      },
      { heading: 'task', cell: ({ task }) => plain(task?.task ?? '') },
      { heading: 'id', cell: ({ task }) => plain(task?.id ?? '') },
      { heading: 'timeout', leftOut: 2, cell: ({ task }) => timeoutText(task, now) },
      { heading: 'state', leftOut: 3, cell: stateCell },
      { heading: 'worker', leftOut: 1, cell: ({ worker }) => plain(worker) },
    ],
    none: 'no tasks are running',
  })
}

function timeoutText(task: SlotView['task'], now: number): string {
  if (task?.timeoutAt === undefined) return 'none'
  const leftMs = Date.parse(task.timeoutAt) - now
  return leftMs > 0 ? `in ${formatLength(leftMs)}` : `${formatLength(-leftMs)} ago`
}

function stateCell({ state, label }: SlotView): Cell {
  return state === 'WORKING' ? 'running' : ['yellow', plain(label)]
}
