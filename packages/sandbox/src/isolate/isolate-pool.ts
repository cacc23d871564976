// Manages a pool of warm isolates of one kind. Each run gets an idle isolate or a new one, or waits its turn.
//
// - `max` limits the number of isolates. Isolates that are ending count until they are gone.
// - An isolate serves only runs with its own memory limit. If a run is waiting and all isolates have other limits, idle isolates
//   are ended to make room.
// - If isolates die before they have imported any handler, new ones are started with backoff, because no task is at fault.
import { BullpenError, type Isolation, type Log } from '@bullpen/contract'
import {
  type Clock,
  createRestartBackoff,
  type IsolateCalls,
  type IsolatedTask,
  type Random,
} from '@bullpen/engine/internal'
import type { AttemptRef } from '../protocol/messages.ts'
import type { StartIsolate } from './isolate.ts'
import { Run, type RunOwner } from './isolated-run.ts'
import { type EndCause, type IsolateHost, ManagedIsolate } from './managed-isolate.ts'

/** The report of an isolate that has ended for a reason other than idleness or the closing of the pool. */
export interface Replaced {
  readonly isolation: Exclude<Isolation, 'inline'>
  /** The isolate's name, such as `thread 7` or `process 4711`. */
  readonly isolate: string
  readonly cause: Exclude<EndCause, 'idle' | 'closed'>
  /** The attempt that was running in the isolate, if there was one. */
  readonly of: AttemptRef | undefined
}

export type Max = number | (() => number)

export interface IsolatePoolOptions {
  readonly isolation: Replaced['isolation']
  /** The maximum number of isolates at a time, including those that are ending. */
  readonly max: Max
  readonly startIsolate: StartIsolate
  readonly reportMemory: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly resources: string | undefined
  readonly idleMs: number
  readonly onReplaced: (event: Replaced) => void
}

/** The delays between starts if isolates die before they have imported a handler. */
const BACKOFF = { firstMs: 100, lastMs: 5_000 }
const JITTER = 0.2

/**
 * The minimum interval between replacements of isolates that failed to import a module, in ms. One broken module must not cost
 * other tasks their warm isolates.
 */
const REPLACE_BROKEN_INTERVAL_MS = 5_000

export class IsolatePool implements RunOwner {
  readonly #options: IsolatePoolOptions
  readonly #host: IsolateHost
  /** The isolates, ordered so that the one that has been idle longest comes first. */
  #isolates: readonly ManagedIsolate[] = []
  #waiting: readonly Run[] = []
  #closed = false
  readonly #backoff = createRestartBackoff(BACKOFF)
  #startAfter = Number.NEGATIVE_INFINITY
  #brokenAfter = Number.NEGATIVE_INFINITY
  #stopTimer: (() => void) | undefined

  /** @throws BullpenError `invalid_configuration` if `max` is not a whole number of at least 1. */
  constructor(options: IsolatePoolOptions) {
    this.#options = options
    if (!Number.isInteger(this.#max) || this.#max < 1) {
      throw new BullpenError(
        'invalid_configuration',
        `max for isolation '${options.isolation}' is ${this.#max}; expected a whole number of at least 1`,
      )
    }
    this.#host = {
      ...options,
      started: () => {
        this.#backoff.reset()
      },
      freed: (isolate) => {
        this.#isolates = [...this.#isolates.filter((other) => other !== isolate), isolate]
        this.#dispatch()
      },
      gone: (isolate, cause, of) => this.#gone(isolate, cause, of),
      mayReplaceBroken: () => this.#mayReplaceBroken(),
    }
  }

  get #max(): number {
    const { max } = this.#options
    return typeof max === 'number' ? max : max()
  }

  /** Returns how many isolates are ready and have no run. */
  idle(): number {
    return this.#isolates.filter(({ state }) => state === 'idle').length
  }

  /** Starts an isolate for a later run, unless as many as `maxStarting` are starting. */
  prepare(memoryLimitBytes: number | undefined, maxStarting: number): void {
    if (this.#closed || this.#isolates.filter(({ state }) => state === 'starting').length >= maxStarting) return
    this.#start({ task: { memoryLimitBytes } })
  }

  run(task: IsolatedTask, calls: IsolateCalls): Run {
    const run = new Run(task, calls, this)
    if (this.#closed) run.end({ kind: 'closed', reason: 'parent_closed' })
    else {
      this.#waiting = [...this.#waiting, run]
      this.#dispatch()
    }
    return run
  }

  /** Does nothing, because a waiting run will start with its signal already aborted. */
  signal(): void {}

  kill(run: Run): void {
    this.#waiting = this.#waiting.filter((other) => other !== run)
    run.panic('isolate_died', 'the task was killed while waiting for an isolate')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stopTimer?.()
    // Waiting runs have not started, so their tasks can be requeued.
    for (const run of this.#waiting) run.end({ kind: 'closed', reason: 'parent_closed' })
    this.#waiting = []
    await Promise.all(this.#isolates.map((isolate) => isolate.close()))
  }

  /** Assigns isolates to waiting runs, first come, first served. */
  #dispatch(): void {
    if (this.#closed) return
    for (const run of this.#waiting) {
      const isolate = this.#idleFor(run) ?? this.#start(run)
      if (isolate === undefined) continue
      this.#waiting = this.#waiting.filter((other) => other !== run)
      isolate.take(run)
    }
    this.#makeRoom()
  }

  /** Returns the most recently used idle isolate that suits the run, because it is the warmest. */
  #idleFor({ task }: Run): ManagedIsolate | undefined {
    return this.#isolates.findLast(
      ({ state, memoryLimitBytes }) => state === 'idle' && memoryLimitBytes === task.memoryLimitBytes,
    )
  }

  #start({ task }: { readonly task: Pick<IsolatedTask, 'memoryLimitBytes'> }): ManagedIsolate | undefined {
    if (this.#isolates.length >= this.#max) return undefined
    const waitMs = this.#startAfter - this.#options.clock.monotonic()
    if (waitMs > 0) {
      this.#stopTimer ??= this.#options.clock.after(waitMs, () => {
        this.#stopTimer = undefined
        this.#dispatch()
      })
      return undefined
    }
    const isolate = new ManagedIsolate(this.#host, task.memoryLimitBytes)
    this.#isolates = [...this.#isolates, isolate]
    return isolate
  }

  /**
   * Retires as many idle isolates as there are waiting runs. If a run is waiting although isolates are idle, it needs another
   * memory limit.
   */
  #makeRoom(): void {
    const ending = this.#isolates.filter(({ state }) => state === 'ending').length
    const needed = this.#isolates.length < this.#max ? 0 : this.#waiting.length - ending
    const idle = this.#isolates.filter(({ state }) => state === 'idle')
    for (const isolate of idle.slice(0, Math.max(0, needed))) isolate.retire('made_room')
  }

  #gone(isolate: ManagedIsolate, cause: EndCause, of: AttemptRef | undefined): void {
    this.#isolates = this.#isolates.filter((other) => other !== isolate)
    const { isolation, clock, random, onReplaced } = this.#options
    const failed = cause === 'isolate_died' || cause === 'out_of_memory' || cause === 'unable_to_start'
    if (failed && !isolate.started) {
      const backoffMs = this.#backoff.next(0) * (1 + JITTER * (2 * random() - 1))
      this.#startAfter = clock.monotonic() + backoffMs
    }
    if (cause !== 'idle' && cause !== 'closed') onReplaced({ isolation, isolate: isolate.name, cause, of })
    this.#dispatch()
  }

  #mayReplaceBroken(): boolean {
    const now = this.#options.clock.monotonic()
    if (now < this.#brokenAfter) return false
    this.#brokenAfter = now + REPLACE_BROKEN_INTERVAL_MS
    return true
  }
}
