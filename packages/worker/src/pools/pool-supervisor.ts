// Supervises the pools of a worker, one for each queue. It starts, controls and drains them, and closes them with the worker.
import { BullpenError, type DrainMode } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import { type DrainLimits, drainLimits, type Pool } from '@bullpen/engine/internal'
import { type DrainCause, PoolEntry, type PoolEntryOptions } from './pool-entry.ts'

export interface DrainRequest {
  readonly mode: DrainMode
  /** The timeout of the mode `soft_timeout`, in ms. Defaults to the worker's drain timeout. */
  readonly timeoutMs?: number | undefined
  /** When this signal aborts, the wait for running tasks ends immediately. */
  readonly escalate?: AbortSignal | undefined
  /** Set if something unknown is broken in this worker. Its pools then end as RECOVER_ERR. */
  readonly broken?: boolean | undefined
}

export interface PoolSupervisorOptions extends Pick<PoolEntryOptions, 'createPool' | 'observe' | 'log'> {
  /** The concurrency of each queue. */
  readonly sizes: ReadonlyMap<string, number>
  /** The worker's drain timeout and grace period, in ms. */
  readonly drainTimes: { readonly drainMs: number; readonly graceMs: number }
}

export interface PoolSupervisor {
  readonly queues: readonly string[]
  pool(queue: string): Pool | undefined
  /** Why the pool must not take tasks. Undefined if it may take them. */
  causeOf(queue: string): DrainCause | undefined
  /**
   * Starts every pool that no drain prevents from starting, or none if the worker is draining. `run` can start a pool in another
   * way; if it returns undefined, the pool is not started.
   */
  start(run?: (pool: Pool) => Promise<unknown> | undefined): Promise<void>
  /** Drains one pool, or prevents it from starting. Concurrent drains are merged, and the harsher one wins. */
  drain(queue: string, request: DrainRequest, cause: DrainCause): void
  /**
   * Resumes a paused or drained pool. A drained pool is replaced by a new one. Returns 'later' if the pool is still draining and
   * will be replaced when it has finished. Idempotent.
   *
   * @throws BullpenError `wrong_state` if the worker is draining.
   */
  resume(queue: string): 'now' | 'later'
  /** Resizes the pool and any pool that replaces it. @throws BullpenError the same errors as {@link Pool.resize}. */
  resize(queue: string, concurrency: number): void
  /** Drains every pool with the worker. Pools that a command drained earlier are not reported again. */
  end(request: DrainRequest): Promise<readonly DrainReport[]>
  /** Whether the pools are draining with the worker, or have drained with it. */
  ending(): boolean
  /** Why the worker is not ready. Undefined if every pool takes tasks, or was paused or drained on request. */
  notReady(): string | undefined
  status(): readonly PoolStatus[]
}

export function createPoolSupervisor({ sizes, drainTimes, ...each }: PoolSupervisorOptions): PoolSupervisor {
  const entries = new Map(
    [...sizes].map(([queue, concurrency]) => [queue, new PoolEntry({ queue, concurrency, ...each })] as const),
  )
  const all = [...entries.values()]
  let ending = false

  const entryOf = (queue: string): PoolEntry => {
    const entry = entries.get(queue)
    if (entry !== undefined) return entry
    const queues = [...entries.keys()].join(', ')
    throw new BullpenError('queue_not_found', `this worker has no pool for queue '${queue}'; its queues: ${queues}`)
  }
  const limitsOf = ({ mode, timeoutMs, escalate, broken }: DrainRequest): DrainLimits => ({
    ...drainLimits(mode, { ...drainTimes, drainMs: timeoutMs ?? drainTimes.drainMs }),
    hurry: escalate,
    broken,
  })

  return {
    queues: [...entries.keys()],
    pool: (queue) => entries.get(queue)?.pool,
    causeOf: (queue) => entries.get(queue)?.cause,
    async start(run = (pool) => pool.start()) {
      if (!ending) await Promise.all(all.map((entry) => entry.start(run)))
    },
    drain: (queue, request, cause) => entryOf(queue).drain(limitsOf(request), cause),
    resume: (queue) => entryOf(queue).resume(),
    resize: (queue, concurrency) => entryOf(queue).resize(concurrency),
    async end(request) {
      ending = true
      const limits = limitsOf(request)
      return Promise.all(all.map((entry) => entry.close(limits)).filter((report) => report !== undefined))
    },
    ending: () => ending,
    notReady: () =>
      all
        .filter(({ cause }) => cause === undefined)
        .map(({ pool }) => pool.notReady())
        .find((why) => why !== undefined),
    status: () => all.map((entry) => entry.status()),
  }
}
