// The crew: the workers of one pool, who is idle, who runs what, and who is to end.
import type { CancelReason, TaskId, WorkerState } from '@bullpen/contract'
import type { Clock, TakenTask } from '../ports/ports.ts'
import { type CloseReason, type Interruption, Worker, type WorkerStatus } from './slot.ts'

export type Terminating = Extract<WorkerState, `TERMINATING_${string}`>

/** `cancelling`: it has been signalled; the verdict follows. `not_cancellable`: a short task, which can't be stopped. */
export type LocalCancel = 'cancelling' | 'not_cancellable' | 'not_found'

/** A worker that takes no more tasks. */
const ENDING: readonly WorkerState[] = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATED',
] satisfies readonly (Terminating | 'TERMINATED')[]

export class Crew {
  #workers: readonly Worker[] = []
  /** The last one to have become idle is the next to work. */
  readonly #idle: Worker[] = []
  readonly #leftovers = new Set<Interruption>()
  readonly #onLeftovers: (count: number) => void
  readonly #clock: Clock
  #whenIdle: (() => void)[] = []
  #busy = 0
  /** How many there have ever been. */
  #numbered = 0
  /** What brings tasks is there. */
  #begun = false

  /** `onLeftovers` hears how many handlers go on after their attempt has ended, whenever that number changes. */
  constructor(size: number, clock: Clock, onLeftovers: (count: number) => void) {
    this.#clock = clock
    this.#onLeftovers = onLeftovers
    this.#grow(size)
  }

  /** Workers that are not told to end. */
  get size(): number {
    return this.#lasting().length
  }

  get busy(): number {
    return this.#busy
  }

  get leftoverCount(): number {
    return this.#leftovers.size
  }

  readonly leftovers = {
    add: (run: Interruption): void => {
      this.#leftovers.add(run)
      this.#onLeftovers(this.#leftovers.size)
    },
    delete: (run: Interruption): void => {
      if (this.#leftovers.delete(run)) this.#onLeftovers(this.#leftovers.size)
    },
  }

  status(): readonly WorkerStatus[] {
    return this.#workers.map((worker) => worker.status())
  }

  /** What runs now: its attempt has not ended. */
  running(): readonly TakenTask[] {
    return this.#workers.flatMap(({ task, concluded }) => (task === undefined || concluded ? [] : [task]))
  }

  /** All workers become idle: at the start, and after {@link failed}. Returns how many had failed. */
  begin(): number {
    this.#begun = true
    const failed = this.#workers.filter(({ state }) => state === 'RECOVER_ERR').length
    for (const worker of this.#workers) {
      if (worker.state !== 'NEW' && worker.state !== 'RECOVER_ERR') continue
      worker.moveTo('IDLE')
      this.#idle.push(worker)
    }
    return failed
  }

  /** What brings tasks has failed: idle workers can't go on until it is there again. */
  failed(): void {
    this.#begun = false
    for (const worker of this.#idle.splice(0)) worker.moveTo('RECOVER_ERR')
  }

  /** An idle worker for this task, or undefined when there is none. */
  take(task: TakenTask): Worker | undefined {
    const worker = this.#idle.pop()
    if (worker === undefined) return undefined
    worker.moveTo('WORKING')
    worker.task = task
    this.#busy++
    return worker
  }

  release(worker: Worker): void {
    worker.task = undefined
    worker.concluded = false
    this.#busy--
    if (worker.state === 'WORKING') {
      worker.moveTo('IDLE')
      this.#idle.push(worker)
    } else {
      worker.moveTo('TERMINATED')
      worker.close()
    }
    if (this.#busy > 0) return
    for (const tell of this.#whenIdle) tell()
    this.#whenIdle = []
  }

  /** Resolves when no worker runs a task. */
  idle(): Promise<void> {
    return this.#busy === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Told to end: idle ones do so at once, the others when their task has ended. Twice is once. */
  end(state: Terminating): void {
    for (const worker of this.#workers) this.#end(worker, state)
  }

  /** As `end`, of those that have a task: the others wait for one that is on its way. */
  endAtWork(state: Terminating): void {
    for (const worker of this.#workers) if (worker.task !== undefined) this.#end(worker, state)
  }

  /** So many that are not told to end. Those that are too many end, idle ones first; those that have ended are forgotten. */
  resize(size: number): void {
    const lasting = this.#lasting()
    const byTurn = lasting.toSorted(
      (a, b) => Number(a.task !== undefined) - Number(b.task !== undefined) || b.number - a.number,
    )
    for (const worker of byTurn.slice(0, Math.max(0, lasting.length - size))) {
      this.#end(worker, 'TERMINATING_STOP_SIGNAL')
    }
    this.#workers = this.#workers.filter(({ state }) => state !== 'TERMINATED')
    this.#grow(size - lasting.length)
  }

  /**
   * Stops one worker: `wait` lets its task end first, `hard` stops it, and it is handed back. False: there is no such
   * worker, or it is ending already.
   */
  stop(number: number, how: 'wait' | 'hard'): boolean {
    const worker = this.#workers.find((each) => each.number === number)
    if (worker === undefined || worker.state === 'TERMINATED') return false
    const ended = this.#end(worker, 'TERMINATING_STOP_SIGNAL')
    if (how === 'hard') worker.interruption?.stop('worker_stopped')
    return ended || how === 'hard'
  }

  cancel(id: TaskId, reason: CancelReason = 'cancelled'): LocalCancel {
    const worker = this.#workers.find(({ task }) => task?.id === id)
    if (worker === undefined) return 'not_found'
    if (worker.interruption === undefined) return 'not_cancellable'
    worker.interruption.stop(reason)
    return 'cancelling'
  }

  /** Closes the context of the attempt of this task, when it runs here: of this start, or of whichever. */
  close(id: TaskId, reason: CloseReason, start?: number): void {
    const worker = this.#workers.find(({ task }) => task?.id === id && (start === undefined || task.start === start))
    worker?.interruption?.close(reason)
  }

  /** Closes the context of every long attempt, with at most so much grace. */
  closeAll(reason: CloseReason, graceMs: number): void {
    for (const { interruption } of this.#workers) interruption?.close(reason, graceMs)
  }

  #lasting(): readonly Worker[] {
    return this.#workers.filter(({ state }) => !ENDING.includes(state))
  }

  #grow(by: number): void {
    const more = Array.from({ length: Math.max(0, by) }, () => new Worker(++this.#numbered, this.#clock))
    this.#workers = [...this.#workers, ...more]
    if (this.#begun) this.begin()
  }

  #end(worker: Worker, state: Terminating): boolean {
    if (worker.state === 'TERMINATED' || worker.state === state || worker.state === 'TERMINATING_PARENT_CTX_CLOSED') {
      return false
    }
    if (worker.state === 'TERMINATING_STOP_SIGNAL' && state === 'TERMINATING_TASK_CH_CLOSED') return false
    const ending = ENDING.includes(worker.state)
    worker.moveTo(state)
    if (worker.task !== undefined) return !ending
    const at = this.#idle.indexOf(worker)
    if (at >= 0) this.#idle.splice(at, 1)
    worker.moveTo('TERMINATED')
    worker.close()
    return !ending
  }
}
