// Models a pool with its slots, tasks and drain. The model is written independently of the engine and does not use promises.
import type { DrainMode, PoolState, SlotState } from '@bullpen/contract'
import {
  type ExpectedEnd,
  endByInterruption,
  endByLeaving,
  INTERRUPTIONS,
  type InterruptedBy,
  type Leaving,
} from '../attempt/reference.fixture.ts'
import { GRACE_MS, TIMEOUT_MS } from './pool.fixture.ts'

interface ModelTask {
  readonly kind: 'short' | 'long' | 'fragile'
  readonly startedAt: number
  readonly slot: ModelWorker
  interrupted: { readonly by: InterruptedBy; readonly at: number; readonly graceMs: number } | undefined
  escaped: boolean
  end: ExpectedEnd | undefined
  left: boolean
}

interface ModelWorker {
  readonly number: number
  state: SlotState
  task: ModelTask | undefined
}

const FIRST_RESTART_MS = 500
const LAST_RESTART_MS = 30_000
/** The ways in which a slot can be stopped, from the gentlest to the harshest. A stop may only become harsher. */
const WAYS = ['TERMINATING_TASK_CH_CLOSED', 'TERMINATING_STOP_SIGNAL', 'TERMINATING_PARENT_CTX_CLOSED']
/** How long a drain waits for its slots after their grace period, and then for the consumer. */
const BEYOND_MS = 500

export class PoolModel {
  now = 0
  state: PoolState = 'BG_RUNNING'
  paused = false
  slots: ModelWorker[] = []
  /** Every task that was given to the pool, or 'released' if the pool released it. */
  readonly given: (ModelTask | 'released')[] = []
  stuckHandlers = 0
  late = 0
  /** The drain's counts so far. */
  readonly drained = { finished: 0, requeued: 0, failed: 0, abandoned: 0, slowestTaskMs: 0 }
  #idle: ModelWorker[] = []
  #numbered = 0
  readonly #maxStuckHandlers: number
  #consumer: { readonly upSince: number } | { readonly restartAt: number } = { upSince: 0 }
  #failures = 0
  #isDraining = false
  #lost = 0
  #drain:
    | {
        readonly startedAt: number
        light: boolean
        deadlineAt: number
        signalledAt: number | undefined
        readonly by: 'drain' | 'parent_closed'
      }
    | undefined

  constructor(size: number, maxStuckHandlers: number) {
    this.#grow(size)
    this.#maxStuckHandlers = maxStuckHandlers
  }

  get tasks(): ModelTask[] {
    return this.given.filter((task) => task !== 'released')
  }

  get busy(): number {
    return this.slots.filter(({ task }) => task !== undefined).length
  }

  get size(): number {
    return this.slots.filter(({ state }) => !state.startsWith('TERMINAT')).length
  }

  get runs(): boolean {
    return this.state === 'BG_RUNNING'
  }

  get full(): boolean {
    return this.stuckHandlers > this.#maxStuckHandlers
  }

  get takes(): boolean {
    return this.runs && !this.full && this.size > 0
  }

  get #starts(): boolean {
    return (this.runs || (this.#isDraining && this.#drain?.light === true)) && !this.paused && !this.full
  }

  /** Gives the pool a task. `to` is the index of the slot that the pool chose for it. */
  give(kind: ModelTask['kind'], to: number): void {
    const chosen = this.#idle.find((idle) => idle === this.slots[to])
    const takes = this.#starts && this.#idle.length > 0
    if (takes && chosen === undefined) throw new Error('a slot was idle, but the task was not given to an idle slot')
    const slot = takes ? chosen : undefined
    this.#idle = this.#idle.filter((idle) => idle !== slot)
    if (slot === undefined) {
      this.given.push('released')
      if (this.#isDraining) this.drained.requeued++
      return
    }
    const task = {
      kind,
      startedAt: this.now,
      slot,
      interrupted: undefined,
      escaped: false,
      end: undefined,
      left: false,
    }
    slot.state = 'WORKING'
    slot.task = task
    this.given.push(task)
  }

  /** Makes the task's handler leave its attempt. Further calls have no effect. */
  leave(task: ModelTask, how: Leaving): void {
    if (task.left) return
    task.left = true
    if (task.end !== undefined) {
      this.stuckHandlers--
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

  /** Returns false if the pool throws a typed error. */
  stopWorker(number: number, how: 'wait' | 'hard'): boolean {
    const slot = this.slots.find((each) => each.number === number)
    if (slot === undefined || slot.state === 'TERMINATED') return false
    const ending = slot.state.startsWith('TERMINATING')
    this.#terminate(slot, 'TERMINATING_STOP_SIGNAL')
    if (how === 'hard' && slot.task !== undefined) this.interrupt(slot.task, 'slot_stopped')
    return !ending || how === 'hard'
  }

  feedFails(): void {
    if (!this.runs || 'restartAt' in this.#consumer) return
    const failures = this.now - this.#consumer.upSince > LAST_RESTART_MS ? 0 : this.#failures
    this.#failures = failures + 1
    this.#consumer = { restartAt: this.now + Math.min(FIRST_RESTART_MS * 2 ** failures, LAST_RESTART_MS) }
    for (const slot of this.#idle.splice(0)) slot.state = 'RECOVER_ERR'
  }

  /** Returns false if the pool throws a typed error. */
  pause(paused: boolean): boolean {
    if (this.runs) this.paused = paused
    return this.runs
  }

  /** Returns false if the pool throws a typed error. */
  resize(size: number): boolean {
    if (!this.runs) return false
    const lasting = this.slots.filter(({ state }) => !state.startsWith('TERMINAT')).reverse()
    const inTurn = [...lasting.filter(({ task }) => !task), ...lasting.filter(({ task }) => task)]
    for (const slot of inTurn.slice(0, Math.max(0, lasting.length - size))) {
      this.#terminate(slot, 'TERMINATING_STOP_SIGNAL')
    }
    this.slots = this.slots.filter(({ state }) => state !== 'TERMINATED')
    this.#grow(size - lasting.length)
    return true
  }

  drain(mode: DrainMode, ms: number, broken: boolean): void {
    const drainMs = { light: Number.POSITIVE_INFINITY, soft: Number.POSITIVE_INFINITY, soft_timeout: ms, hard: 0 }[mode]
    this.#press(mode === 'light' && !broken, broken ? 0 : drainMs, 'drain', broken)
  }

  parentCloses(): void {
    this.#press(false, 0, 'parent_closed', false)
  }

  /** Advances the time by `ms`, stopping at each moment at which something is due. */
  advance(ms: number): void {
    const until = this.now + ms
    this.#happens()
    for (let next = this.#next(); next <= until; next = this.#next()) {
      this.now = next
      this.#happens()
    }
    this.now = until
  }

  #press(light: boolean, drainMs: number, by: 'drain' | 'parent_closed', broken: boolean): void {
    const began = this.#drain === undefined
    this.#drain ??= {
      startedAt: this.now,
      light: true,
      deadlineAt: Number.POSITIVE_INFINITY,
      signalledAt: undefined,
      by,
    }
    if (began) this.#isDraining = true
    if (broken) this.state = 'RECOVER_ERR'
    else if (began) this.state = 'SHUTTING_DOWN'
    if (!this.#isDraining) return
    this.#drain.light &&= light
    this.#drain.deadlineAt = Math.min(this.#drain.deadlineAt, this.now + drainMs)
    for (const slot of this.slots) {
      if (!this.#drain.light) {
        const byParent = began && by === 'parent_closed'
        this.#terminate(slot, byParent ? 'TERMINATING_PARENT_CTX_CLOSED' : 'TERMINATING_STOP_SIGNAL')
      } else if (began && slot.task !== undefined) this.#terminate(slot, 'TERMINATING_TASK_CH_CLOSED')
    }
    this.#happens()
  }

  #grow(by: number): void {
    const up = 'upSince' in this.#consumer
    const more = Array.from(
      { length: Math.max(0, by) },
      (): ModelWorker => ({ number: ++this.#numbered, state: up ? 'IDLE' : 'NEW', task: undefined }),
    )
    this.slots.push(...more)
    if (up) this.#idle.push(...more)
  }

  /** Returns the next moment at which something is due. */
  #next(): number {
    const dues = this.tasks.filter(({ end }) => end === undefined).map((task) => this.#due(task))
    if ('restartAt' in this.#consumer && this.runs) dues.push(this.#consumer.restartAt)
    if (this.#drain !== undefined && this.#isDraining) {
      const { signalledAt, deadlineAt } = this.#drain
      dues.push(signalledAt === undefined ? deadlineAt : signalledAt + GRACE_MS + 2 * BEYOND_MS)
    }
    return Math.min(...dues.filter((at) => at > this.now), Number.POSITIVE_INFINITY)
  }

  #due({ kind, startedAt, interrupted }: ModelTask): number {
    if (kind === 'short') return Number.POSITIVE_INFINITY
    return interrupted === undefined ? startedAt + TIMEOUT_MS : interrupted.at + interrupted.graceMs
  }

  /** Carries out everything that is due by now. */
  #happens(): void {
    for (const task of this.tasks) {
      if (task.end !== undefined || this.#due(task) > this.now) continue
      if (task.interrupted === undefined) this.interrupt(task, 'run_timeout')
      else {
        this.stuckHandlers++
        this.#end(task, endByInterruption(task.interrupted.by, this.#about(task)))
      }
    }
    if ('restartAt' in this.#consumer && this.runs && this.#consumer.restartAt <= this.now) {
      this.#consumer = { upSince: this.now }
      for (const slot of this.slots.filter(({ state }) => state === 'RECOVER_ERR' || state === 'NEW')) {
        slot.state = 'IDLE'
        this.#idle.push(slot)
      }
    }
    this.#drainOn()
  }

  #drainOn(): void {
    if (this.#drain === undefined || !this.#isDraining) return
    const { startedAt, deadlineAt, signalledAt, by } = this.#drain
    if (this.busy > 0 && signalledAt === undefined && deadlineAt <= this.now) {
      this.#drain.signalledAt = this.now
      for (const slot of this.slots) this.#terminate(slot, 'TERMINATING_PARENT_CTX_CLOSED')
      for (const { task } of this.slots) if (task !== undefined) this.interrupt(task, by)
    }
    const over = signalledAt !== undefined && this.now >= signalledAt + GRACE_MS + 2 * BEYOND_MS
    if (this.busy > 0 && !over) return
    for (const slot of this.slots) this.#terminate(slot, 'TERMINATING_TASK_CH_CLOSED')
    this.#isDraining = false
    if (this.state === 'SHUTTING_DOWN') this.state = over ? 'TERMINATE_TIMEOUT' : 'SHUTDOWN'
    this.drained.abandoned = this.busy + this.#lost
    if (over) this.drained.slowestTaskMs = this.now - startedAt
  }

  #end(task: ModelTask, as: ExpectedEnd): void {
    const isLost = this.state === 'RECOVER_ERR' && ['drain', 'parent_closed', 'slot_stopped'].includes(as.reason ?? '')
    const end = isLost ? { state: 'RECOVER_ERR', reason: 'process_lost', verdict: 'lost' } : as
    task.end = end
    if (this.#drain !== undefined && this.#isDraining) this.#count(end, this.now - this.#drain.startedAt)
    const { slot } = task
    slot.task = undefined
    if (slot.state === 'WORKING') {
      const isUp = 'upSince' in this.#consumer
      slot.state = isUp ? 'IDLE' : 'RECOVER_ERR'
      if (isUp) this.#idle.push(slot)
    } else slot.state = 'TERMINATED'
    this.#drainOn()
  }

  #count({ verdict, reason }: ExpectedEnd, slowestTaskMs: number): void {
    this.drained.slowestTaskMs = slowestTaskMs
    if (verdict === 'requeued') this.drained.requeued++
    else if (reason === 'drain' || reason === 'parent_closed') this.drained.failed++
    else if (reason === 'process_lost') this.#lost++
    else if (verdict !== 'lost') this.drained.finished++
  }

  #terminate(slot: ModelWorker, how: SlotState): void {
    if (slot.state === 'TERMINATED' || WAYS.indexOf(slot.state) >= WAYS.indexOf(how)) return
    slot.state = slot.task === undefined ? 'TERMINATED' : how
    this.#idle = this.#idle.filter((idle) => idle !== slot)
  }

  /** Returns the properties that all of the model's tasks have: attempt 1 of 3, without a deadline. */
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
