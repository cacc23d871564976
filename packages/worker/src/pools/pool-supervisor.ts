// Supervises a worker's pools, one for each queue: starts, controls and drains them, and closes them with the worker.
//
// A pool starts only once. Each queue therefore has an entry, which replaces a drained pool when the queue is resumed. As long as
// an entry has a drain cause, its pool does not take tasks, but the worker stays ready, because the drain was requested. Resuming
// clears the cause. A drained pool is then replaced at once, whereas a pool that is still draining is replaced when it has
// finished.
import { BullpenError, type DrainMode, type Log } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import { assertTransition, type DrainLimits, drainLimits, type Pool, type Transitions } from '@bullpen/engine/internal'
import { logDrainSummary, summarizeDrain } from '../drain-summary.ts'

export interface DrainRequest {
  /** The drain mode. Defaults to that of each pool's settings. */
  readonly mode?: DrainMode | undefined
  /** The timeout of the mode `soft_timeout`, in ms. Defaults to that of each pool's settings. */
  readonly timeoutMs?: number | undefined
  /** When this signal aborts, the wait for running tasks ends immediately. */
  readonly escalate?: AbortSignal | undefined
  /** True if this worker is broken in an unknown way. Its pools then end as RECOVER_ERR. */
  readonly broken?: boolean | undefined
}

export interface PoolSupervisorOptions extends Pick<PoolEntryOptions, 'createPool' | 'observe' | 'log'> {
  /** The concurrency of each queue. */
  readonly sizes: ReadonlyMap<string, number>
  /** Returns how a queue's pool drains, unless a request says otherwise. Times are in ms. */
  readonly drainSettings: (queue: string) => NonNullable<PoolStatus['drainSettings']>
}

export interface PoolSupervisor {
  readonly queues: readonly string[]
  pool(queue: string): Pool | undefined
  /** Returns why the pool must not take tasks, or undefined if it may take them. */
  causeOf(queue: string): DrainCause | undefined
  /**
   * Starts every pool that no drain prevents from starting. Does not start any pool if the worker is draining. `run`, if given,
   * starts a pool in another way. If `run` returns undefined, the pool is not started.
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
  /** Returns whether the pools are draining with the worker or have drained with it. */
  isDraining(): boolean
  /**
   * Returns why the worker is not ready, or undefined if every pool takes tasks or was paused or drained on request. If the store is known
   * to be usable, a lost connection is no reason.
   */
  notReady(isStoreUsable: boolean): string | undefined
  status(): readonly PoolStatus[]
}

export function createPoolSupervisor({ sizes, drainSettings, ...each }: PoolSupervisorOptions): PoolSupervisor {
  const entries = new Map(
    [...sizes].map(([queue, concurrency]) => [queue, new PoolEntry({ queue, concurrency, ...each })] as const),
  )
  const all = [...entries.values()]
  let isDraining = false

  const entryOf = (queue: string): PoolEntry => {
    const entry = entries.get(queue)
    if (entry !== undefined) return entry
    const queues = [...entries.keys()].join(', ')
    throw new BullpenError(
      'queue_not_found',
      `this worker has no pool for queue '${queue}'; it has pools for ${queues}`,
    )
  }
  const limitsOf = (queue: string, { mode, timeoutMs, escalate, broken }: DrainRequest): DrainLimits => {
    const own = drainSettings(queue)
    const times = { drainMs: timeoutMs ?? own.timeoutMs, graceMs: own.graceMs }
    return { ...drainLimits(mode ?? own.mode, times), hurry: escalate, broken }
  }

  return {
    queues: [...entries.keys()],
    pool: (queue) => entries.get(queue)?.pool,
    causeOf: (queue) => entries.get(queue)?.cause,
    async start(run = (pool) => pool.start()) {
      if (!isDraining) await Promise.all(all.map((entry) => entry.start(run)))
    },
    drain: (queue, request, cause) => entryOf(queue).drain(limitsOf(queue, request), cause),
    resume: (queue) => entryOf(queue).resume(),
    resize: (queue, concurrency) => entryOf(queue).resize(concurrency),
    async end(request) {
      isDraining = true
      const reports = all.map((entry) => entry.close(limitsOf(entry.queue, request)))
      return Promise.all(reports.filter((report) => report !== undefined))
    },
    isDraining: () => isDraining,
    notReady: (isStoreUsable) =>
      all
        .filter(({ cause }) => cause === undefined)
        .map(({ pool }) => pool.notReady(isStoreUsable))
        .find((why) => why !== undefined),
    status: () => all.map((entry) => ({ ...entry.status(), drainSettings: drainSettings(entry.queue) })),
  }
}

export type PoolEntryState = 'new' | 'held' | 'running' | 'draining' | 'replacing' | 'drained' | 'closing' | 'closed'

/**
 * - `new`: not started.
 * - `held`: the worker has started, but a drain prevents the pool from starting.
 * - `running`: the pool has been started. It may be paused.
 * - `draining`: the pool is draining because of a command, or because the whole queue is draining.
 * - `replacing`: the pool was resumed while it was draining. The next pool starts when this one has drained.
 * - `drained`: the pool has drained, and stays in this state until it is resumed.
 * - `closing`, `closed`: the pool drains or has drained with the worker. The entry never leaves `closed`.
 */
export const POOL_ENTRY_TRANSITIONS = {
  new: ['running', 'held', 'closing'],
  held: ['running', 'closing'],
  running: ['draining', 'closing'],
  draining: ['replacing', 'drained', 'closing'],
  replacing: ['draining', 'running', 'closing'],
  drained: ['running', 'closed'],
  closing: ['closed'],
  closed: [],
} as const satisfies Transitions<PoolEntryState>

/**
 * The reason why a pool must not take tasks: a command for this pool, or a command that changed the settings of its queue.
 */
export interface DrainCause {
  readonly by: 'command' | 'queue'
  /** The command's id. */
  readonly command: string
}

export interface PoolEntryOptions {
  readonly queue: string
  readonly concurrency: number
  readonly createPool: (queue: string, concurrency: number) => Pool
  /** Collects metrics of the pool until the returned function is called. */
  readonly observe: (pool: Pool) => () => void
  readonly log: Log
}

export class PoolEntry {
  readonly queue: string
  readonly #options: PoolEntryOptions
  #state: PoolEntryState = 'new'
  #cause: DrainCause | undefined
  #concurrency: number
  #pool: Pool
  #stopObserving: () => void
  /** The report of the drain that closes the worker. */
  #report: Promise<DrainReport> | undefined

  constructor(options: PoolEntryOptions) {
    this.#options = options
    this.queue = options.queue
    this.#concurrency = options.concurrency
    this.#pool = options.createPool(options.queue, options.concurrency)
    this.#stopObserving = options.observe(this.#pool)
  }

  get pool(): Pool {
    return this.#pool
  }

  get state(): PoolEntryState {
    return this.#state
  }

  /** Why the pool must not take tasks. Undefined if it may take them. */
  get cause(): DrainCause | undefined {
    return this.#cause
  }

  /** Starts the pool with `run`, unless a drain prevents that. If `run` returns undefined, it did not start the pool. */
  start(run: (pool: Pool) => Promise<unknown> | undefined): Promise<unknown> | undefined {
    if (this.#cause !== undefined) {
      this.#moveTo('held')
      return undefined
    }
    const running = run(this.#pool)
    if (running !== undefined) this.#moveTo('running')
    return running
  }

  /** Drains the pool, or prevents it from starting. Concurrent drains are merged, and the harsher one wins. */
  drain(limits: DrainLimits, cause: DrainCause): void {
    this.#cause = cause
    switch (this.#state) {
      case 'new':
      case 'held':
      case 'drained':
      case 'closed':
        return
      case 'running':
        this.#moveTo('draining')
        void this.#pool.drain(limits).then((report) => this.#drained(report))
        return
      case 'replacing':
        this.#moveTo('draining')
        void this.#pool.drain(limits)
        return
      case 'draining':
      case 'closing':
        void this.#pool.drain(limits)
    }
  }

  /**
   * Ends a pause and a drain. Returns 'later' if the pool is still draining and will be replaced when it has finished.
   * Idempotent.
   *
   * @throws BullpenError `wrong_state` if the worker is draining, or if the pool has not been started.
   */
  resume(): 'now' | 'later' {
    const wasDrained = this.#cause !== undefined
    switch (this.#state) {
      case 'closing':
      case 'closed':
        throw new BullpenError(
          'wrong_state',
          `the pool for queue '${this.queue}' is ${this.#state}: the worker is draining`,
        )
      case 'new':
        this.#cause = undefined
        if (!wasDrained) this.#pool.resume()
        return 'now'
      case 'running':
        this.#pool.resume()
        return 'now'
      case 'held':
        this.#cause = undefined
        this.#startAgain()
        return 'now'
      case 'drained':
        this.#cause = undefined
        this.#replace()
        return 'now'
      case 'draining':
        this.#cause = undefined
        this.#moveTo('replacing')
        return 'later'
      case 'replacing':
        return 'later'
    }
  }

  /** Resizes the pool and any pool that replaces it. @throws BullpenError the same errors as {@link Pool.resize}. */
  resize(concurrency: number): void {
    if (this.#state === 'new' || this.#state === 'held' || this.#state === 'running') this.#pool.resize(concurrency)
    this.#concurrency = concurrency
  }

  /** Drains the pool with the worker. Returns undefined if an earlier drain has already ended and been reported. */
  close(limits: DrainLimits): Promise<DrainReport> | undefined {
    switch (this.#state) {
      case 'drained':
        this.#moveTo('closed')
        return undefined
      case 'closed':
        return this.#report
      case 'closing':
        void this.#pool.drain(limits)
        return this.#report
      default:
        this.#moveTo('closing')
        this.#report = this.#pool.drain(limits).finally(() => this.#moveTo('closed'))
        return this.#report
    }
  }

  status(): PoolStatus {
    const status = this.#pool.status()
    if (this.#cause === undefined) return status
    const notReady = this.#cause.by === 'command' ? 'drained by command' : 'the whole queue is draining'
    // A drained pool has no slots left, so the concurrency shown is that of its successor.
    return { ...status, notReady, ...(this.#state === 'drained' && { concurrency: this.#concurrency }) }
  }

  #drained(report: DrainReport): void {
    if (this.#state === 'closing' || this.#state === 'closed') return
    logDrainSummary(this.#options.log, summarizeDrain([report]), { queue: this.queue })
    if (this.#state === 'replacing') this.#replace()
    else this.#moveTo('drained')
  }

  #replace(): void {
    this.#stopObserving()
    this.#pool = this.#options.createPool(this.queue, this.#concurrency)
    this.#stopObserving = this.#options.observe(this.#pool)
    this.#startAgain()
  }

  #startAgain(): void {
    this.#moveTo('running')
    this.#pool
      .start()
      .catch((err: unknown) => this.#options.log.error({ err, queue: this.queue }, 'resumed pool did not start'))
  }

  #moveTo(to: PoolEntryState): void {
    assertTransition(`the entry for queue '${this.queue}'`, POOL_ENTRY_TRANSITIONS, this.#state, to)
    this.#state = to
  }
}
