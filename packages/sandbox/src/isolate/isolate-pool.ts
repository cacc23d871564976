// Keeps warm isolates of one kind: gives each task one that is idle or new, and replaces those that end.
import { BullpenError, type Isolation, type Log } from '@bullpen/contract'
import type { Clock, IsolateCalls, IsolatedTask, Random } from '@bullpen/engine/internal'
import type { StartOf } from '../protocol/messages.ts'
import type { StartIsolate } from './isolate.ts'
import { type Place, Run } from './isolated-run.ts'
import { Cell, type CellHost, type EndCause } from './managed-isolate.ts'

/** An isolate's life ended, and not because it had nothing to do. */
export interface Replaced {
  readonly isolation: Exclude<Isolation, 'inline'>
  /** `thread 7`, `process 4711`. */
  readonly isolate: string
  readonly cause: Exclude<EndCause, 'idle' | 'closed'>
  /** The task that ran in it then. */
  readonly of: StartOf | undefined
}

export type Most = number | (() => number)

export interface IsolatePoolOptions {
  readonly isolation: Replaced['isolation']
  /** The most isolates at a time; those that are ending count. */
  readonly max: Most
  readonly startIsolate: StartIsolate
  readonly reportMemory: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly resources: string | undefined
  readonly idleMs: number
  readonly onReplaced: (event: Replaced) => void
}

/** Between the starts of isolates that die before they come as far as a handler: doubled from the first to the last. */
const BACKOFF = { firstMs: 100, lastMs: 5_000, jitter: 0.2 }

/** A module that can't be imported must not cost everyone else their warm isolates. */
const REPLACE_BROKEN_EVERY_MS = 5_000

export class IsolatePool implements Place {
  readonly #options: IsolatePoolOptions
  readonly #host: CellHost
  /** Longest idle first. */
  #cells: readonly Cell[] = []
  #waiting: readonly Run[] = []
  #closed = false
  #failures = 0
  #startAfter = Number.NEGATIVE_INFINITY
  #brokenAfter = Number.NEGATIVE_INFINITY
  #stopTimer: (() => void) | undefined

  /** @throws BullpenError `invalid_configuration` when `max` is not a whole number from 1. */
  constructor(options: IsolatePoolOptions) {
    this.#options = options
    if (!Number.isInteger(this.#max) || this.#max < 1) {
      throw new BullpenError(
        'invalid_configuration',
        `isolates of kind ${options.isolation}: max is ${this.#max}; it is a whole number from 1`,
      )
    }
    this.#host = {
      ...options,
      started: () => {
        this.#failures = 0
      },
      freed: (cell) => {
        this.#cells = [...this.#cells.filter((other) => other !== cell), cell]
        this.#place()
      },
      gone: (cell, cause, of) => this.#gone(cell, cause, of),
      mayReplaceBroken: () => this.#mayReplaceBroken(),
    }
  }

  get #max(): number {
    const { max } = this.#options
    return typeof max === 'number' ? max : max()
  }

  run(task: IsolatedTask, calls: IsolateCalls): Run {
    const run = new Run(task, calls, this)
    if (this.#closed) run.end({ kind: 'closed', reason: 'parent_closed' })
    else {
      this.#waiting = [...this.#waiting, run]
      this.#place()
    }
    return run
  }

  /** Of a run that waits: it will begin with its signal aborted. */
  signal(): void {}

  kill(run: Run): void {
    this.#waiting = this.#waiting.filter((other) => other !== run)
    run.panic('isolate_died', 'the task was ended while it waited for an isolate')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stopTimer?.()
    // They have not begun, so nothing is lost: others may have them.
    for (const run of this.#waiting) run.end({ kind: 'closed', reason: 'parent_closed' })
    this.#waiting = []
    await Promise.all(this.#cells.map((cell) => cell.close()))
  }

  /** Gives isolates to those that wait, first come first served. */
  #place(): void {
    if (this.#closed) return
    for (const run of this.#waiting) {
      const cell = this.#idleFor(run) ?? this.#start(run)
      if (cell === undefined) continue
      this.#waiting = this.#waiting.filter((other) => other !== run)
      cell.take(run)
    }
    this.#makeRoom()
  }

  /** The one used last is the warmest. */
  #idleFor({ task }: Run): Cell | undefined {
    return this.#cells.findLast(
      ({ state, memoryLimitBytes }) => state === 'idle' && memoryLimitBytes === task.memoryLimitBytes,
    )
  }

  #start({ task }: Run): Cell | undefined {
    if (this.#cells.length >= this.#max) return undefined
    const waitMs = this.#startAfter - this.#options.clock.monotonic()
    if (waitMs > 0) {
      this.#stopTimer ??= this.#options.clock.after(waitMs, () => {
        this.#stopTimer = undefined
        this.#place()
      })
      return undefined
    }
    const cell = new Cell(this.#host, task.memoryLimitBytes)
    this.#cells = [...this.#cells, cell]
    return cell
  }

  /** Whoever waits while another is idle needs one with another memory limit. */
  #makeRoom(): void {
    const ending = this.#cells.filter(({ state }) => state === 'ending').length
    const needed = this.#cells.length < this.#max ? 0 : this.#waiting.length - ending
    const idle = this.#cells.filter(({ state }) => state === 'idle')
    for (const cell of idle.slice(0, Math.max(0, needed))) cell.retire('made_room')
  }

  #gone(cell: Cell, cause: EndCause, of: StartOf | undefined): void {
    this.#cells = this.#cells.filter((other) => other !== cell)
    const { isolation, clock, random, onReplaced } = this.#options
    const failed = cause === 'isolate_died' || cause === 'out_of_memory' || cause === 'unable_to_start'
    if (failed && !cell.started) {
      const { firstMs, lastMs, jitter } = BACKOFF
      const backoffMs = Math.min(firstMs * 2 ** this.#failures, lastMs) * (1 + jitter * (2 * random() - 1))
      this.#failures++
      this.#startAfter = clock.monotonic() + backoffMs
    }
    if (cause !== 'idle' && cause !== 'closed') onReplaced({ isolation, isolate: cell.name, cause, of })
    this.#place()
  }

  #mayReplaceBroken(): boolean {
    const now = this.#options.clock.monotonic()
    if (now < this.#brokenAfter) return false
    this.#brokenAfter = now + REPLACE_BROKEN_EVERY_MS
    return true
  }
}
