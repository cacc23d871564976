// The reference model of a pool: its workers, tasks and drain, written down a second time and without a single promise.
import type { PoolState, WorkerState } from '@bullpen/contract'
import { GRACE_MS, TIMEOUT_MS } from './pool.fixture.ts'
import {
  type ExpectedEnd,
  endByInterruption,
  endByLeaving,
  INTERRUPTIONS,
  type InterruptedBy,
  type Leaving,
} from './reference.fixture.ts'

interface ModelTask {
  readonly kind: 'short' | 'long' | 'fragile'
  readonly beganAt: number
  readonly worker: ModelWorker
  interrupted: { readonly by: InterruptedBy; readonly at: number; readonly graceMs: number } | undefined
  escaped: boolean
  end: ExpectedEnd | undefined
  left: boolean
}

interface ModelWorker {
  state: WorkerState
  task: ModelTask | undefined
}

const FIRST_RESTART_MS = 500
const LAST_RESTART_MS = 30_000
/** What a drain waits for its workers beyond their grace, and then for the feed. */
const BEYOND_MS = 250

export class PoolModel {
  now = 0
  state: PoolState = 'BG_RUNNING'
  readonly workers: ModelWorker[]
  /** Every task that was given, or 'refused'. */
  readonly given: (ModelTask | 'refused')[] = []
  leftovers = 0
  late = 0
  #idle: ModelWorker[]
  readonly #maxLeftovers: number
  #feed: { readonly upSince: number } | { readonly restartAt: number } = { upSince: 0 }
  #failures = 0
  #broken = false
  #drain:
    | { deadlineAt: number; signalledAt: number | undefined; by: 'drain' | 'parent_closed'; readonly graceMs: number }
    | undefined

  constructor(size: number, maxLeftovers: number) {
    this.workers = Array.from({ length: size }, () => ({ state: 'IDLE', task: undefined }))
    this.#idle = [...this.workers]
    this.#maxLeftovers = maxLeftovers
  }

  get tasks(): ModelTask[] {
    return this.given.filter((task) => task !== 'refused')
  }

  get busy(): number {
    return this.workers.filter(({ task }) => task !== undefined).length
  }

  get size(): number {
    return this.workers.filter(({ state }) => !state.startsWith('TERMINAT')).length
  }

  get runs(): boolean {
    return this.state === 'BG_RUNNING'
  }

  get full(): boolean {
    return this.leftovers > this.#maxLeftovers
  }

  get takes(): boolean {
    return this.runs && !this.full && this.size > 0
  }

  /** `to`: the index of the worker that the pool gave it to. */
  give(kind: ModelTask['kind'], to: number): void {
    const chosen = this.#idle.find((idle) => idle === this.workers[to])
    const takes = this.runs && !this.full && this.#idle.length > 0
    if (takes && chosen === undefined) throw new Error('no idle worker took the task, and there was one')
    const worker = takes ? chosen : undefined
    this.#idle = this.#idle.filter((idle) => idle !== worker)
    if (worker === undefined) {
      this.given.push('refused')
      return
    }
    const task = {
      kind,
      beganAt: this.now,
      worker,
      interrupted: undefined,
      escaped: false,
      end: undefined,
      left: false,
    }
    worker.state = 'WORKING'
    worker.task = task
    this.given.push(task)
  }

  /** The handler of the task leaves; once. */
  leave(task: ModelTask, how: Leaving): void {
    if (task.left) return
    task.left = true
    if (task.end !== undefined) {
      this.leftovers--
      this.late++
    } else if (task.interrupted !== undefined) {
      const { by } = task.interrupted
      const counts = how === 'valid output' && INTERRUPTIONS[by].outputCounts
      if (how === 'valid output' && !counts) this.late++
      this.#end(task, counts ? endByLeaving(how, this.#about(task)) : endByInterruption(by, this.#about(task)))
    } else {
      const end = task.escaped
        ? endByInterruption('escaped_error', this.#about(task))
        : endByLeaving(how, this.#about(task))
      this.#end(task, end)
    }
  }

  escape(task: ModelTask): void {
    if (task.end !== undefined) return
    if (task.kind === 'short') task.escaped = true
    else this.interrupt(task, 'escaped_error')
  }

  interrupt(task: ModelTask, by: InterruptedBy, graceMs = GRACE_MS): void {
    if (task.kind === 'short' || task.end !== undefined || task.interrupted !== undefined) return
    task.interrupted = { by, at: this.now, graceMs: Math.min(graceMs, GRACE_MS) }
  }

  cancel(task: ModelTask): string {
    if (task.end !== undefined) return 'not_found'
    this.interrupt(task, 'cancelled')
    return task.kind === 'short' ? 'not_cancellable' : 'cancelling'
  }

  /** False: a typed error. */
  stopWorker(number: number, how: 'wait' | 'hard'): boolean {
    const worker = this.workers[number - 1]
    if (worker === undefined || worker.state === 'TERMINATED') return false
    const ending = worker.state.startsWith('TERMINATING')
    this.#terminate(worker, 'TERMINATING_STOP_SIGNAL')
    if (how === 'hard' && worker.task !== undefined) this.interrupt(worker.task, 'worker_stopped')
    return !ending || how === 'hard'
  }

  feedFails(): void {
    if (!this.runs || 'restartAt' in this.#feed) return
    const failures = this.now - this.#feed.upSince > LAST_RESTART_MS ? 0 : this.#failures
    this.#failures = failures + 1
    this.#feed = { restartAt: this.now + Math.min(FIRST_RESTART_MS * 2 ** failures, LAST_RESTART_MS) }
    for (const worker of this.#idle.splice(0)) worker.state = 'RECOVER_ERR'
  }

  drain(drainMs: number, broken: boolean): void {
    this.#begin(drainMs, 'drain', broken)
  }

  parentCloses(): void {
    if (this.#drain === undefined) this.#begin(0, 'parent_closed', false)
    else this.#drain.deadlineAt = Math.min(this.#drain.deadlineAt, this.now)
    this.#happens()
  }

  /** To the end of `ms`, one moment after the other. */
  advance(ms: number): void {
    const until = this.now + ms
    this.#happens()
    for (let next = this.#next(); next <= until; next = this.#next()) {
      this.now = next
      this.#happens()
    }
    this.now = until
  }

  #begin(drainMs: number, by: 'drain' | 'parent_closed', broken: boolean): void {
    if (this.#drain !== undefined) return
    this.state = 'SHUTTING_DOWN'
    this.#broken = broken
    this.#drain = { deadlineAt: this.now + drainMs, signalledAt: undefined, by, graceMs: GRACE_MS }
    const ending = by === 'drain' ? 'TERMINATING_STOP_SIGNAL' : 'TERMINATING_PARENT_CTX_CLOSED'
    for (const worker of this.workers) this.#terminate(worker, ending)
    this.#happens()
  }

  /** The next moment at which something is due by itself. */
  #next(): number {
    const dues = this.tasks.filter(({ end }) => end === undefined).map((task) => this.#due(task))
    if ('restartAt' in this.#feed && this.runs) dues.push(this.#feed.restartAt)
    if (this.#drain !== undefined && this.state === 'SHUTTING_DOWN') {
      const { signalledAt, deadlineAt, graceMs } = this.#drain
      dues.push(signalledAt === undefined ? deadlineAt : signalledAt + graceMs + 2 * BEYOND_MS)
    }
    return Math.min(...dues.filter((at) => at > this.now), Number.POSITIVE_INFINITY)
  }

  #due({ kind, beganAt, interrupted }: ModelTask): number {
    if (kind === 'short') return Number.POSITIVE_INFINITY
    return interrupted === undefined ? beganAt + TIMEOUT_MS : interrupted.at + interrupted.graceMs
  }

  /** All that is due by now. */
  #happens(): void {
    for (const task of this.tasks) {
      if (task.end !== undefined || this.#due(task) > this.now) continue
      if (task.interrupted === undefined) this.interrupt(task, 'run')
      else {
        this.leftovers++
        this.#end(task, endByInterruption(task.interrupted.by, this.#about(task)))
      }
    }
    if ('restartAt' in this.#feed && this.runs && this.#feed.restartAt <= this.now) {
      this.#feed = { upSince: this.now }
      for (const worker of this.workers.filter(({ state }) => state === 'RECOVER_ERR')) {
        worker.state = 'IDLE'
        this.#idle.push(worker)
      }
    }
    this.#drainOn()
  }

  #drainOn(): void {
    if (this.#drain === undefined || this.state !== 'SHUTTING_DOWN') return
    const { deadlineAt, signalledAt, by, graceMs } = this.#drain
    if (this.busy > 0 && signalledAt === undefined && deadlineAt <= this.now) {
      this.#drain.signalledAt = this.now
      for (const worker of this.workers) this.#terminate(worker, 'TERMINATING_PARENT_CTX_CLOSED')
      for (const { task } of this.workers) if (task !== undefined) this.interrupt(task, by, graceMs)
    }
    const over = signalledAt !== undefined && this.now >= signalledAt + graceMs + 2 * BEYOND_MS
    if (this.busy === 0 || over) this.state = this.#broken ? 'RECOVER_ERR' : over ? 'TERMINATE_TIMEOUT' : 'SHUTDOWN'
  }

  #end(task: ModelTask, end: ExpectedEnd): void {
    task.end = end
    const { worker } = task
    worker.task = undefined
    if (worker.state === 'WORKING') {
      worker.state = 'IDLE'
      this.#idle.push(worker)
    } else worker.state = 'TERMINATED'
    this.#drainOn()
  }

  #terminate(worker: ModelWorker, how: WorkerState): void {
    const ways = ['TERMINATING_STOP_SIGNAL', 'TERMINATING_PARENT_CTX_CLOSED']
    if (worker.state === 'TERMINATED' || ways.indexOf(worker.state) >= ways.indexOf(how)) return
    worker.state = worker.task === undefined ? 'TERMINATED' : how
    this.#idle = this.#idle.filter((idle) => idle !== worker)
  }

  /** Attempt 1 of 3, without a deadline: what the pool's tasks are given. */
  #about({ kind }: ModelTask) {
    const fragile = kind === 'fragile'
    return {
      attempt: 1,
      maxAttempts: 3,
      endsAt: this.now,
      deadlineAt: Number.POSITIVE_INFINITY,
      fragile,
      snoozeMs: 1_000,
    }
  }
}
