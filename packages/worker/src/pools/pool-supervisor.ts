// Supervises the pools of a worker, one for each queue: starts, steers and drains them, and closes them with the worker.
import { BullpenError, type DrainMode } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import { type DrainLimits, drainLimits, type Pool } from '@bullpen/engine/internal'
import { type DrainCause, PoolEntry, type PoolEntryOptions } from './pool-entry.ts'

export interface DrainRequest {
  readonly mode: DrainMode
  /** Of `soft_timeout`, in ms. Default: the worker's drain timeout. */
  readonly timeoutMs?: number | undefined
  /** When aborted: ends the wait for running tasks at once. */
  readonly escalate?: AbortSignal | undefined
  /** Something unknown is broken in this worker: its pools end as RECOVER_ERR. */
  readonly broken?: boolean | undefined
}

export interface PoolSupervisorOptions extends Pick<PoolEntryOptions, 'createPool' | 'observe' | 'log'> {
  /** Concurrency by queue. */
  readonly sizes: ReadonlyMap<string, number>
  /** The worker's drain timeout and grace period, in ms. */
  readonly drainTimes: { readonly drainMs: number; readonly graceMs: number }
}

export interface PoolSupervisor {
  readonly queues: readonly string[]
  pool(queue: string): Pool | undefined
  /** Why the pool must not take tasks. Undefined: it is meant to. */
  causeOf(queue: string): DrainCause | undefined
  /** Starts every pool that no drain holds; none when the worker drains. `run`: another way to start one; undefined does not start it. */
  start(run?: (pool: Pool) => Promise<unknown> | undefined): Promise<void>
  /** Drains one pool, or keeps it from starting. Concurrent drains merge; the harsher wins. */
  drain(queue: string, request: DrainRequest, cause: DrainCause): void
  /**
   * Resumes a paused or drained pool. A drained pool is replaced by a new one; `later` means that it still drains and is
   * replaced when it has finished. Idempotent.
   *
   * @throws BullpenError `wrong_state` when the worker drains.
   */
  resume(queue: string): 'now' | 'later'
  /** Also the size of the pools that replace the present one. @throws BullpenError as {@link Pool.resize}. */
  resize(queue: string, concurrency: number): void
  /** Drains every pool with the worker. Pools that a command has drained before are not reported again. */
  end(request: DrainRequest): Promise<readonly DrainReport[]>
  /** Whether the pools drain with the worker, or have. */
  ending(): boolean
  /** Why the worker is not ready. Undefined when every pool takes tasks, or was paused or drained on request. */
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
