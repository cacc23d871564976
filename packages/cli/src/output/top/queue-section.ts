// Shows the queues in bullpen top: their tasks by status, the oldest waiting one, rates, busy slots and state.
import type { QueueStats } from '@bullpen/contract'
import type { Snapshot } from '../../commands/top/snapshot.ts'
import { queueStateCell } from '../fleet/fleet-text.ts'
import { formatLength, plain } from '../format.ts'
import { by, type Section, section } from './section.ts'

const NUMBER = { align: 'right' } as const

/** The queues with the most waiting and running tasks come first. */
export function queueSection({ now: time, queues }: Snapshot): Section {
  const now = Date.parse(time)
  return section({
    rows: queues.toSorted(
      by(
        ({ tasks }) => -(tasks.waiting + tasks.active),
        ({ rates }) => -(rates.in + rates.out),
        ({ queue }) => queue,
      ),
    ),
    columns: [
      { heading: 'queue', cell: ({ queue }) => plain(queue) },
      { heading: 'waiting', ...NUMBER, cell: ({ tasks }) => String(tasks.waiting) },
      { heading: 'active', ...NUMBER, cell: ({ tasks }) => String(tasks.active) },
      { heading: 'scheduled', ...NUMBER, leftOut: 1, cell: ({ tasks }) => String(tasks.scheduled) },
      { heading: 'retrying', ...NUMBER, leftOut: 2, cell: ({ tasks }) => String(tasks.retrying) },
      { heading: 'dead', ...NUMBER, cell: ({ tasks: { dead } }) => (dead === 0 ? '0' : ['red', String(dead)]) },
      { heading: 'depth', ...NUMBER, leftOut: 4, cell: depthText },
      { heading: 'oldest', ...NUMBER, cell: (queue) => oldestText(queue, now) },
      { heading: 'in/s', ...NUMBER, cell: ({ rates }) => rateText(rates.in) },
      { heading: 'out/s', ...NUMBER, cell: ({ rates }) => rateText(rates.out) },
      { heading: 'busy', ...NUMBER, leftOut: 3, cell: ({ busy, slots }) => `${busy}/${slots}` },
      { heading: 'state', cell: (queue) => queueStateCell(queue, now, obstaclesOf(queue)) },
    ],
    none: 'no queues',
  })
}

/** Returns how many tasks count against a limit on the length of the queue. */
function depthOf({ tasks }: QueueStats): number {
  return tasks.waiting + tasks.scheduled + tasks.retrying
}

function depthText(queue: QueueStats): string {
  const depth = depthOf(queue)
  return queue.maxTasks === undefined ? String(depth) : `${depth}/${queue.maxTasks}`
}

function oldestText({ oldestWaiting }: QueueStats, now: number): string {
  return oldestWaiting === undefined ? '-' : formatLength(Math.max(0, now - Date.parse(oldestWaiting.readyAt)))
}

/** Formats a number per second with one decimal place if it is below 10. */
export function rateText(perSecond: number): string {
  return String(perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond))
}

/** Returns why tasks cannot enter the queue or start, unless the queue is paused or draining, or its outbox is full. */
function obstaclesOf(queue: QueueStats): readonly string[] {
  const { maxTasks, maxBytes, bytes, pools, tasks, drain } = queue
  const isFull = (maxTasks !== undefined && depthOf(queue) >= maxTasks) || (maxBytes !== undefined && bytes >= maxBytes)
  return [
    ...(isFull ? ['full'] : []),
    // A drain stops the pools of its queue, which do not count then.
    ...(pools === 0 && tasks.waiting > 0 && drain === undefined ? ['no workers'] : []),
    ...(isLimited(queue) ? ['limited'] : []),
    ...(queue.blockedTasks > 0 ? [`${queue.blockedTasks} blocked`] : []),
  ]
}

/** Returns whether tasks wait beside free slots of a queue whose starts a command limits. */
function isLimited({ concurrency, rate, paused, drain, tasks, busy, slots }: QueueStats): boolean {
  const hasLimit = concurrency !== undefined || rate !== undefined
  return hasLimit && !paused && drain === undefined && tasks.waiting > 0 && busy < slots
}
