// Decides why a task does not run, from what the store knows about the task, its queue and the queue's workers. If several reasons
// apply, the first one counts, in this order: the task itself, the whole queue, its workers, a limit, the order of the queue.
import type { DrainMode, ExplainedTask, LaneWait, TaskRecord, WaitsFor } from '@bullpen/contract'
import { isAlive } from '../fleet/fleet.ts'
import type { Broker } from '../ports/broker/broker.ts'
import type { RegisteredWorker } from '../ports/fleet.ts'
import type { PoolStatus } from '../ports/pool-status.ts'
import { isLeft } from '../task/task-status.ts'

export type WaitPool = Pick<PoolStatus, 'state' | 'paused' | 'concurrency' | 'busy' | 'notReady'>

export interface WaitFacts {
  /** In ms since 1970, on the store's clock, like all other times. */
  readonly now: number
  readonly task: Pick<TaskRecord, 'status' | 'dueAt' | 'attemptsMade' | 'maxAttempts' | 'attempts'>
  /** What keeps the task's lane from starting it. Undefined if the task has no lane. */
  readonly lane: LaneWait | undefined
  /** Whether the task is in quarantine and no worker had a place for it. */
  readonly isPostponed: boolean
  /** Whether the task is among the active ones, although no worker has its lock. */
  readonly isLost: boolean
  /** How many tasks start before this one, at most `MAX_AHEAD`. */
  readonly ahead: number
  readonly pause: { readonly since?: number; readonly by?: string } | undefined
  readonly drain: { readonly mode: DrainMode; readonly since: number; readonly by?: string } | undefined
  readonly isOutboxFull: boolean
  /** Until when a handler has throttled the queue. */
  readonly throttledUntil: number | undefined
  /** The queue's rate, if it allows no start before `until`. */
  readonly usedRate: { readonly until: number; readonly max: number; readonly perMs: number } | undefined
  /** The queue's concurrency limit, and how many tasks are active. */
  readonly concurrency: number | undefined
  readonly active: number
  /** The pools on the queue of all live workers. */
  readonly pools: readonly WaitPool[]
  /** When a worker last reported a running pool on the queue, if one has within 30 days. */
  readonly servedAt: number | undefined
}

/** Returns undefined only if the task is running or has ended. */
export function whyWaiting(facts: WaitFacts): WaitsFor | undefined {
  const { status } = facts.task
  if (status !== 'waiting' && status !== 'scheduled' && status !== 'retrying') return undefined
  return reasonOfTask(facts) ?? reasonOfQueue(facts) ?? reasonOfWorkers(facts) ?? reasonOfOrder(facts)
}

function reasonOfTask({ now, task, isPostponed, isLost }: WaitFacts): WaitsFor | undefined {
  const { status, dueAt, attemptsMade, maxAttempts, attempts } = task
  if (isLost) return { kind: 'recovery' }
  // A task that is due waits like the others, and the next fetch of any worker notices it.
  if (status === 'waiting' || dueAt === undefined || dueAt <= now) return undefined
  if (isPostponed) return { kind: 'quarantine', until: dueAt }
  const last = attempts.at(-1)
  if (isLeft(last)) return { kind: 'unsupported', until: dueAt, worker: last.worker, code: last.code ?? '' }
  if (status === 'scheduled') return { kind: 'scheduled', until: dueAt }
  return { kind: 'retry', until: dueAt, attempt: Math.min(attemptsMade + 1, maxAttempts), maxAttempts }
}

function reasonOfQueue({ pause, drain, isOutboxFull }: WaitFacts): WaitsFor | undefined {
  if (drain !== undefined) return { kind: 'drain', ...drain }
  if (pause !== undefined) return { kind: 'paused', ...pause }
  return isOutboxFull ? { kind: 'outbox' } : undefined
}

function reasonOfWorkers(facts: WaitFacts): WaitsFor | undefined {
  const { servedAt: since } = facts
  // A pool that is new has not served the queue yet.
  const pools = facts.pools.filter(({ state }) => state !== 'NEW')
  if (pools.length === 0) return { kind: 'no_worker', ...(since !== undefined && { since }) }
  const workers = pools.length
  const running = pools.filter(isRunning)
  if (running.length === 0) return { kind: 'workers_draining', workers }
  const serving = running.filter(({ paused }) => !paused)
  if (serving.length === 0) return { kind: 'workers_paused', workers }
  if (serving.every(({ notReady }) => notReady !== undefined)) {
    return { kind: 'workers_not_ready', workers, reason: serving[0]?.notReady ?? '' }
  }
  return serving.every(({ state }) => state === 'ONLINE_RUNNING') ? { kind: 'workers_reserved', workers } : undefined
}

function reasonOfOrder(facts: WaitFacts): WaitsFor {
  const { throttledUntil, usedRate, concurrency, active, lane, ahead } = facts
  if (throttledUntil !== undefined) return { kind: 'throttle', until: throttledUntil }
  if (usedRate !== undefined) return { kind: 'queue_rate', ...usedRate }
  if (concurrency !== undefined && active >= concurrency) {
    return { kind: 'queue_concurrency', limit: concurrency, ahead }
  }
  if (lane !== undefined) return lane
  const serving = facts.pools.filter((pool) => isRunning(pool) && !pool.paused && pool.notReady === undefined)
  const slots = serving.reduce((sum, pool) => sum + pool.concurrency, 0)
  const busy = serving.reduce((sum, pool) => sum + Math.min(pool.busy, pool.concurrency), 0)
  return { kind: 'slot', slots, busy, ahead }
}

/** Returns the pools of the live workers on a queue. Those of a worker that shuts down are draining, whatever they report. */
export function livePools(workers: readonly RegisteredWorker[], queue: string, now: number): readonly WaitPool[] {
  return workers
    .filter((worker) => isAlive(worker, now))
    .flatMap(({ pools, draining }) =>
      pools
        .filter((pool) => pool.queue === queue)
        .map((pool) => (draining ? { ...pool, state: 'SHUTTING_DOWN' as const } : pool)),
    )
}

/** Returns whether a pool in this state starts tasks. */
export function isRunning({ state }: Pick<PoolStatus, 'state'>): boolean {
  return state === 'BG_RUNNING' || state === 'ONLINE_RUNNING'
}

/** Returns the task with what it waits for. Only views of a single task need this. It costs nothing if the task runs or has ended. */
export async function explained(broker: Pick<Broker, 'waitsFor'>, task: TaskRecord): Promise<ExplainedTask> {
  const waitsFor = await broker.waitsFor(task)
  return waitsFor === undefined ? task : { ...task, waitsFor }
}
