// The entry of one queue: its pool, and the next one when a drained pool is to work again (a pool starts only once).
//
// While the entry has a drain cause, its pool takes no tasks, and the worker stays ready, since that was requested. Resuming
// clears the cause. A drained pool is then replaced by a new one; a pool that still drains is replaced when it has finished.
import { BullpenError, type Log } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import { assertTransition, type DrainLimits, type Pool, type Transitions } from '@bullpen/engine/internal'
import { logDrainSummary, summarizeDrain } from '../drain-summary.ts'

export type PoolEntryState = 'new' | 'held' | 'running' | 'draining' | 'replacing' | 'drained' | 'closing' | 'closed'

/**
 * - `new`: not started.
 * - `held`: the worker has started, but a drain keeps the pool from starting.
 * - `running`: the pool has been started. It may be paused.
 * - `draining`: by a command, or because the whole queue drains.
 * - `replacing`: draining, and resumed meanwhile: the next pool starts when this one has drained.
 * - `drained`: until it is resumed.
 * - `closing`, `closed`: with the worker. Final.
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

/** Why a pool must not take tasks: a command for this pool, or the settings of its queue, which a command set. */
export interface DrainCause {
  readonly by: 'command' | 'queue'
  /** The command's id. */
  readonly command: string
}

export interface PoolEntryOptions {
  readonly queue: string
  readonly concurrency: number
  readonly createPool: (queue: string, concurrency: number) => Pool
  /** Measures the pool until the returned function is called. */
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
  /** Of the drain with the worker. */
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

  /** Undefined: the pool is meant to take tasks. */
  get cause(): DrainCause | undefined {
    return this.#cause
  }

  /** Starts the pool by `run`, unless a drain holds it. A `run` that returns undefined does not start it. */
  start(run: (pool: Pool) => Promise<unknown> | undefined): Promise<unknown> | undefined {
    if (this.#cause !== undefined) {
      this.#moveTo('held')
      return undefined
    }
    const running = run(this.#pool)
    if (running !== undefined) this.#moveTo('running')
    return running
  }

  /** Drains the pool if it has been started, and keeps it from starting if not. Concurrent drains merge; the harsher wins. */
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
   * Ends a pause and a drain. `later`: when the pool that still drains has finished. Idempotent.
   *
   * @throws BullpenError `wrong_state` when the worker drains, or when the pool has not been started.
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

  /** Also the size of the pools that replace this one. @throws BullpenError as {@link Pool.resize}. */
  resize(concurrency: number): void {
    if (this.#state === 'new' || this.#state === 'held' || this.#state === 'running') this.#pool.resize(concurrency)
    this.#concurrency = concurrency
  }

  /** Drains with the worker. Undefined when a drain that ended before has reported already. */
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
    // A drained pool has no slots left; its successor will have these.
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
