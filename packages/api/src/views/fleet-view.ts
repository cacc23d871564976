// How the fleet looks from outside: what processes tell of themselves as the API's JSON, in Redis's time.
import {
  type Catalogue,
  ENDED_POOL_STATES,
  type PoolState,
  type PoolView,
  type ProcessView,
  type QueueView,
  type WorkerView,
} from '@bullpen/contract'
import {
  isAlive,
  type PoolStatus,
  type ProcessStatus,
  type QueueSwitches,
  type RegisteredProcess,
  type WorkerStatus,
} from '@bullpen/engine'
import { optionalTime, timeText } from './times.ts'

/** `now`: by Redis's clock. `queue`: of its pools this queue's alone. */
export function processView(process: RegisteredProcess, now: number, queue?: string): ProcessView {
  return {
    process: process.process,
    host: process.host,
    pid: process.pid,
    version: process.version,
    startedAt: timeText(process.startedAt),
    seenAt: timeText(process.seenAt),
    alive: isAlive(process, now),
    draining: process.draining,
    skewMs: process.skewMs,
    drainTimeoutMs: process.drainTimeoutMs,
    graceMs: process.graceMs,
    pools: process.pools.filter((pool) => queue === undefined || pool.queue === queue).map(poolView),
  }
}

export function poolView(pool: PoolStatus): Omit<PoolView, 'process'> {
  const { queue, state, paused, concurrency, busy, leftovers, notReady } = pool
  return { queue, state, paused, concurrency, busy, leftovers, ...(notReady === undefined ? {} : { notReady }) }
}

/** The registry knows no kinds: they are the catalogue's. */
export function workerView(
  process: ProcessStatus,
  { queue }: PoolStatus,
  { worker, state, since, task }: WorkerStatus,
  catalogue: Catalogue,
): WorkerView {
  return {
    process: process.process,
    queue,
    worker,
    state,
    since: timeText(since),
    ...(task === undefined
      ? {}
      : {
          task: {
            id: task.id,
            task: task.task,
            start: task.start,
            ...ofCatalogue(task.task, catalogue),
            ...optionalTime('endsBy', task.endsBy),
          },
        }),
  }
}

function ofCatalogue(
  name: string,
  catalogue: Catalogue,
): Pick<NonNullable<WorkerView['task']>, 'kind' | 'onInterrupt'> {
  if (!catalogue.has(name)) return {}
  const { kind, onInterrupt } = catalogue.get(name)
  return kind === 'short' ? { kind } : { kind, onInterrupt }
}

/** `live`: the processes that count. */
export function queueView(queue: string, switches: QueueSwitches, live: readonly ProcessStatus[]): QueueView {
  const { paused, drain, concurrency, rate } = switches
  const pools = live.flatMap((process) => process.pools).filter((pool) => pool.queue === queue && !hasEnded(pool.state))
  return {
    queue,
    intake: drain === undefined ? 'open' : 'closed',
    paused,
    ...(drain === undefined
      ? {}
      : { drain: { mode: drain.mode, since: timeText(drain.since), command: drain.command } }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: { max: rate.max, perMs: rate.perMs } }),
    pools: pools.length,
    workers: sum(pools.map((pool) => pool.concurrency)),
    busy: sum(pools.map(({ busy }) => busy)),
  }
}

function hasEnded(state: PoolState): boolean {
  return (ENDED_POOL_STATES as readonly PoolState[]).includes(state)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
