// Shows the workers in bullpen top: their busy slots and pools. The workers that need attention come first.
import type { WorkerView } from '@bullpen/contract'
import type { Snapshot } from '../../commands/top/snapshot.ts'
import type { Cell } from '../columns.ts'
import { poolRemarks, RUNNING_POOL_STATES, skewText, stallText } from '../fleet/fleet-text.ts'
import { formatLength, plain } from '../format.ts'
import { by, type Section, section } from './section.ts'

interface Row {
  readonly worker: WorkerView
  /** What is unusual about the worker, in words. */
  readonly trouble: readonly string[]
  readonly busy: number
  readonly slots: number
}

const NUMBER = { align: 'right' } as const

/** Among those without trouble, the workers with the most busy slots come first. */
export function workerSection({ now: time, workers }: Snapshot): Section {
  const now = Date.parse(time)
  return section({
    rows: workers
      .map((worker): Row => ({ worker, trouble: troubleOf(worker, now), ...slotsOf(worker) }))
      .sort(
        by(
          ({ worker }) => (worker.alive ? 1 : 0),
          ({ trouble }) => (trouble.length > 0 ? 0 : 1),
          ({ busy }) => -busy,
          ({ worker }) => worker.worker,
        ),
      ),
    columns: [
      { heading: 'worker', cell: ({ worker }) => plain(worker.worker) },
      { heading: 'busy', ...NUMBER, cell: ({ busy, slots }) => `${busy}/${slots}` },
      { heading: 'used', ...NUMBER, cell: ({ busy, slots }) => percentText(busy, slots) },
      { heading: 'up', ...NUMBER, leftOut: 2, cell: ({ worker }) => formatLength(now - Date.parse(worker.startedAt)) },
      { heading: 'version', leftOut: 1, cell: ({ worker }) => plain(worker.version) },
      { heading: 'state', cell: stateCell },
      { heading: 'pools', leftOut: 3, cell: ({ worker }) => poolsText(worker) },
    ],
    none: 'no workers are running',
  })
}

/** Returns the busy slots and all slots. A worker that is lost has none. */
export function slotsOf({ alive, pools }: WorkerView): Pick<Row, 'busy' | 'slots'> {
  const live = alive ? pools : []
  return {
    busy: live.reduce((sum, { busy }) => sum + busy, 0),
    slots: live.reduce((sum, { concurrency }) => sum + concurrency, 0),
  }
}

export function percentText(part: number, whole: number): string {
  return whole === 0 ? '-' : `${Math.round((100 * part) / whole)}%`
}

/** Returns why the worker needs attention. */
function troubleOf({ alive, seenAt, draining, skewMs, stalls, pools }: WorkerView, now: number): readonly string[] {
  if (!alive) return [`LOST: no heartbeat for ${formatLength(now - Date.parse(seenAt))}`]
  const queuesOf = new Map<string, readonly string[]>()
  for (const pool of pools) {
    const hasEnded = !(draining || RUNNING_POOL_STATES.includes(pool.state))
    for (const remark of [...(hasEnded ? [plain(pool.label)] : []), ...poolRemarks(pool)]) {
      queuesOf.set(remark, [...(queuesOf.get(remark) ?? []), plain(pool.queue)])
    }
  }
  const ofPools = [...queuesOf].map(([remark, queues]) =>
    queues.length === pools.length ? remark : `${queues.join(' and ')}: ${remark}`,
  )
  return [draining ? 'draining' : '', ...ofPools, stallText(stalls), skewText(skewMs)].filter(Boolean)
}

function stateCell({ worker: { alive, pools }, trouble }: Row): Cell {
  if (trouble.length > 0) return [alive ? 'yellow' : 'red', trouble.join(', ')]
  return pools.length > 0 && pools.every(({ paused }) => paused) ? ['yellow', 'paused'] : 'running'
}

/** What the pools of a lost worker do is unknown. */
function poolsText({ alive, pools }: WorkerView): string {
  const text = ({ queue, busy, concurrency, paused }: WorkerView['pools'][number]): string =>
    alive ? `${plain(queue)} ${busy}/${concurrency}${paused ? ' paused' : ''}` : plain(queue)
  return pools
    .toSorted(by(({ queue }) => queue))
    .map(text)
    .join(', ')
}
