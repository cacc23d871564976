// Converts the fleet to the form that the API returns: the workers' reports, with times from Redis's clock.
import {
  type BreakerView,
  type Catalogue,
  POOL_STATE_LABELS,
  type PoolState,
  type PoolView,
  type QueueView,
  SLOT_STATE_LABELS,
  type SlotView,
  type WorkerView,
} from '@bullpen/contract'
import { ENDED_POOL_STATES, optionalTime, timeText } from '@bullpen/contract/internal'
import type { PoolStatus, SlotStatus } from '@bullpen/engine'
import {
  type BreakerStatus,
  isAlive,
  type QueueSettings,
  type RegisteredWorker,
  type WorkerStatus,
} from '@bullpen/engine/internal'

/** Converts a worker. `now` is Redis's current time. If `queue` is given, only that queue's pools are included. */
export function workerView(worker: RegisteredWorker, now: number, queue?: string): WorkerView {
  return {
    worker: worker.worker,
    host: worker.host,
    pid: worker.pid,
    version: worker.version,
    startedAt: timeText(worker.startedAt),
    seenAt: timeText(worker.seenAt),
    alive: isAlive(worker, now),
    draining: worker.draining,
    skewMs: worker.skewMs,
    ...(worker.stalls !== undefined && { stalls: worker.stalls }),
    drainTimeoutMs: worker.drainTimeoutMs,
    graceMs: worker.graceMs,
    pools: worker.pools.filter((pool) => queue === undefined || pool.queue === queue).map(poolView),
  }
}

export function poolView({ slots: _slots, ...pool }: PoolStatus): Omit<PoolView, 'worker'> {
  return { ...pool, label: POOL_STATE_LABELS[pool.state] }
}

/** Converts a slot. The kind of its task comes from the catalogue, because the registry does not contain it. */
export function slotView(
  worker: WorkerStatus,
  { queue }: PoolStatus,
  { slot, state, since, task }: SlotStatus,
  catalogue: Catalogue,
): SlotView {
  return {
    worker: worker.worker,
    queue,
    slot,
    state,
    label: SLOT_STATE_LABELS[state],
    since: timeText(since),
    task: task && {
      id: task.id,
      task: task.task,
      fencingToken: task.fencingToken,
      ...definitionFields(task.task, catalogue),
      ...optionalTime('timeoutAt', task.timeoutAt),
    },
  }
}

function definitionFields(
  name: string,
  catalogue: Catalogue,
): Pick<NonNullable<SlotView['task']>, 'kind' | 'onInterrupt'> {
  if (!catalogue.has(name)) return {}
  const { kind, onInterrupt } = catalogue.get(name)
  return kind === 'short' ? { kind } : { kind, onInterrupt }
}

/** JSON leaves undefined fields out. */
export function queueView(queue: string, settings: QueueSettings, live: readonly WorkerStatus[]): QueueView {
  const { outboxFull, drain, perConcurrencyKey, limiters, breakers, ...others } = settings
  const pools = live.flatMap((worker) => worker.pools).filter((pool) => pool.queue === queue && !hasEnded(pool.state))
  return {
    ...others,
    queue,
    admission: drain === undefined ? 'open' : 'closed',
    ...(outboxFull && { outboxFull }),
    drain: drain && { mode: drain.mode, since: timeText(drain.since), command: drain.command },
    perConcurrencyKey,
    limiters: limiters && [...limiters],
    breakers: breakers?.map(breakerView),
    pools: pools.length,
    slots: sum(pools.map((pool) => pool.concurrency)),
    busy: sum(pools.map(({ busy }) => busy)),
  }
}

export function breakerView({ since, startsAt, setBy, ...breaker }: BreakerStatus): BreakerView {
  return {
    ...breaker,
    ...optionalTime('since', since),
    ...optionalTime('startsAt', startsAt),
    ...(setBy === undefined ? {} : { setBy: { by: setBy.by, at: timeText(setBy.at) } }),
  }
}

function hasEnded(state: PoolState): boolean {
  return (ENDED_POOL_STATES as readonly PoolState[]).includes(state)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
