// The entry of one queue. It holds the queue's pool, and replaces the pool when a drained pool is resumed, because a pool can be
// started only once.
//
// While the entry has a drain cause, its pool takes no tasks, but the worker stays ready because the drain was requested.
// Resuming clears the cause. A drained pool is then replaced by a new one, and a pool that is still draining is replaced when
// it has finished.
import { BullpenError, type Log } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import { assertTransition, type DrainLimits, type Pool, type Transitions } from '@bullpen/engine/internal'
import { logDrainSummary, summarizeDrain } from '../drain-summary.ts'

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
 * Why a pool must not take tasks: because of a command for this pool, or because of its queue's settings, which a command set.
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
          `the pool of queue '${this.queue}' is ${this.#state}: the worker is draining`,
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
      .catch((err: unknown) => this.#options.log.error({ err, queue: this.queue }, 'a resumed pool did not start'))
  }

  #moveTo(to: PoolEntryState): void {
    assertTransition(`the entry of queue '${this.queue}'`, POOL_ENTRY_TRANSITIONS, this.#state, to)
    this.#state = to
  }
}
