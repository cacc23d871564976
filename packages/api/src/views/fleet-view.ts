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

export function poolView(pool: PoolStatus): Omit<PoolView, 'worker'> {
  const { queue, state, paused, concurrency, busy, stuckHandlers, notReady, drainSettings } = pool
  return {
    queue,
    state,
    label: POOL_STATE_LABELS[state],
    paused,
    concurrency,
    busy,
    stuckHandlers,
    ...(notReady === undefined ? {} : { notReady }),
    ...(drainSettings === undefined ? {} : { drainSettings }),
  }
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
    ...(task === undefined
      ? {}
      : {
          task: {
            id: task.id,
            task: task.task,
            fencingToken: task.fencingToken,
            ...definitionFields(task.task, catalogue),
            ...optionalTime('timeoutAt', task.timeoutAt),
          },
        }),
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

export function queueView(queue: string, settings: QueueSettings, live: readonly WorkerStatus[]): QueueView {
  const {
    paused,
    outboxFull,
    drain,
    concurrency,
    rate,
    perConcurrencyKey,
    limiters,
    breakers,
    maxTasks,
    maxBytes,
    maxAgeMs,
  } = settings
  const pools = live.flatMap((worker) => worker.pools).filter((pool) => pool.queue === queue && !hasEnded(pool.state))
  return {
    queue,
    admission: drain === undefined ? 'open' : 'closed',
    paused,
    ...(outboxFull && { outboxFull }),
    ...(drain === undefined
      ? {}
      : { drain: { mode: drain.mode, since: timeText(drain.since), command: drain.command } }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: { max: rate.max, perMs: rate.perMs } }),
    ...(perConcurrencyKey === undefined ? {} : { perConcurrencyKey: keyLimitsView(perConcurrencyKey) }),
    ...(limiters === undefined ? {} : { limiters: limiters.map((limiter) => ({ ...limiter })) }),
    ...(breakers === undefined ? {} : { breakers: breakers.map(breakerView) }),
    ...(maxTasks === undefined ? {} : { maxTasks }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(maxAgeMs === undefined ? {} : { maxAgeMs }),
    pools: pools.length,
    slots: sum(pools.map((pool) => pool.concurrency)),
    busy: sum(pools.map(({ busy }) => busy)),
  }
}

function keyLimitsView({ concurrency, rate, ofSingleKeys }: NonNullable<QueueSettings['perConcurrencyKey']>) {
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: { ...rate } }),
    ofSingleKeys,
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
