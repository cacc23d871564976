// Manages a pool's slots: which ones are idle, which are running a task, and which are stopping.
import type { CommitRefusal, SlotState, TaskId } from '@bullpen/contract'
import { emitSettled } from '../attempt/finish.ts'
import type { AttemptResult, CancelCause, CloseReason } from '../ports/attempt-result.ts'
import type { ConsumerHost, FetchedTask, LocalCancel, NamedTask, TaskDeath } from '../ports/consumer.ts'
import type { SlotStatus } from '../ports/pool-status.ts'
import { retriedAtOf } from '../task/cancel-filter.ts'
import { Slot, type SlotHost } from './slot.ts'

export type Terminating = Extract<SlotState, `TERMINATING_${string}`>

/** The states in which a slot does not take any more tasks. */
const STOPPING: readonly SlotState[] = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATED',
] satisfies readonly (Terminating | 'TERMINATED')[]

/** A task that waits until it can run alone. */
export interface HeldTask {
  /** Changes if the task is cancelled meanwhile. */
  task: FetchedTask
  /** Resolves when there is nothing left to wait for. */
  readonly ended: Promise<void>
  end(): void
  hasLostLock: boolean
  letGo(): void
}

/**
 * One pool's slots. The consumer reports lost locks, cancellations and ended tasks to this class, which is the consumer's
 * {@link ConsumerHost}.
 */
export class Slots implements ConsumerHost {
  readonly #host: SlotHost
  readonly #onCapacityChange: () => void
  readonly #onSettled: ConsumerHost['settled']
  readonly #onReleased: ConsumerHost['released']
  #slots: readonly Slot[] = []
  /** The idle slots, as a stack: the slot that became idle last takes the next task. */
  readonly #idle: Slot[] = []
  #whenIdle: (() => void)[] = []
  #whenQuiet: (() => void)[] = []
  /** The tasks that wait until they can run alone in this worker. */
  readonly #held = new Map<TaskId, HeldTask>()
  #busy = 0
  #stuckHandlers = 0
  /** How many slots have ever been created. Their numbers are never reused. */
  #made = 0
  #isFetching = false

  /**
   * `onCapacityChange` is called when the number of slots that take tasks, or the number of stuck handlers, changes. `onSettled`
   * is called with each result that the store has committed or refused. `onReleased` is called whenever the store has confirmed
   * that a task is back in its queue because no slot took it.
   */
  constructor(
    size: number,
    host: Omit<SlotHost, 'onStuckHandler'>,
    onCapacityChange: () => void,
    onSettled: ConsumerHost['settled'] = () => {},
    onReleased: ConsumerHost['released'] = () => {},
  ) {
    this.#host = { ...host, onStuckHandler: (returned) => this.#addStuckHandler(returned) }
    this.#onCapacityChange = onCapacityChange
    this.#onSettled = onSettled
    this.#onReleased = onReleased
    this.#grow(size)
  }

  /** The number of slots, not counting slots that are stopping. */
  get size(): number {
    return this.#staying().length
  }

  get busy(): number {
    return this.#busy
  }

  /** The number of handlers that are still running after their attempts have ended. */
  get stuckHandlers(): number {
    return this.#stuckHandlers
  }

  status(): readonly SlotStatus[] {
    return this.#slots.map((slot) => slot.status())
  }

  /** Returns the tasks whose attempts have not ended. */
  tasks(): readonly FetchedTask[] {
    return [
      ...this.#slots.flatMap(({ runningTask }) => runningTask ?? []),
      ...Array.from(this.#held.values(), ({ task }) => task),
    ]
  }

  /** Makes the slots idle when fetching begins or restarts after {@link fetchingFailed}. Returns how many slots had failed. */
  fetchingBegan(): number {
    this.#isFetching = true
    const failed = this.#slots.filter(({ state }) => state === 'RECOVER_ERR').length
    for (const slot of this.#slots) {
      if (slot.state !== 'NEW' && slot.state !== 'RECOVER_ERR') continue
      slot.moveTo('IDLE')
      this.#idle.push(slot)
    }
    return failed
  }

  fetchingFailed(): void {
    this.#isFetching = false
    for (const slot of this.#idle.splice(0)) slot.moveTo('RECOVER_ERR')
  }

  fetchingResumed(afterMs: number | undefined): void {
    const slots = this.fetchingBegan()
    if (slots > 0 && afterMs !== undefined)
      this.#host.sink({ event: 'slots.restarted', queue: this.#host.queue, slots, afterMs })
  }

  /** Assigns the task to an idle slot and returns the slot, or undefined if no slot is idle. */
  take(task: FetchedTask): Slot | undefined {
    const slot = this.#idle.pop()
    if (slot === undefined) return undefined
    slot.take(task)
    this.#busy++
    return slot
  }

  release(slot: Slot): void {
    slot.release()
    this.#busy--
    if (slot.state === 'IDLE') this.#idle.push(slot)
    if (!this.#isFetching) this.fetchingFailed()
    this.#resolveQuiet()
    if (this.#busy > 0) return
    for (const resolve of this.#whenIdle) resolve()
    this.#whenIdle = []
  }

  /**
   * Runs the task in an idle slot and passes the result to `commit` before releasing the slot. Returns undefined if no slot is
   * idle.
   */
  run<T>(task: FetchedTask, commit: (result: AttemptResult) => T | Promise<T>): Promise<T> | undefined {
    const slot = this.take(task)
    return slot && this.#runIn(slot, task, commit)
  }

  async #runIn<T>(slot: Slot, task: FetchedTask, commit: (result: AttemptResult) => T | Promise<T>): Promise<T> {
    try {
      const running = slot.run(task)
      const result = running instanceof Promise ? await running : running
      slot.commit()
      return await commit(result)
    } finally {
      this.release(slot)
    }
  }

  /** Resolves when no slot has a task. */
  idle(): Promise<void> {
    return this.#busy === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Returns whether no slot runs an attempt that still has its lock. */
  isQuiet(): boolean {
    return !this.#slots.some(({ isRunning }) => isRunning)
  }

  /** Resolves when no slot runs an attempt that still has its lock. */
  quiet(): Promise<void> {
    return this.isQuiet() ? Promise.resolve() : new Promise((resolve) => this.#whenQuiet.push(resolve))
  }

  /**
   * Holds a task that waits until it can run alone. It has no slot yet, but can be cancelled and lose its lock. Call `letGo` before the
   * task is run or released.
   */
  hold(task: FetchedTask): HeldTask {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const held: HeldTask = { task, ended, end, hasLostLock: false, letGo: () => void this.#held.delete(task.id) }
    this.#held.set(task.id, held)
    return held
  }

  /**
   * Stops every slot: idle slots at once, and busy slots after their tasks have ended. Can be called repeatedly. A later call can
   * make the stop harder, but not softer.
   */
  end(state: Terminating): void {
    for (const slot of this.#slots) this.#end(slot, state)
  }

  /** Works like `end`, but only for slots with a task. Idle slots remain available for tasks that are being fetched. */
  endBusy(state: Terminating): void {
    for (const slot of this.#slots) if (slot.task !== undefined) this.#end(slot, state)
  }

  /** Creates new slots, or stops surplus slots, starting with idle ones. Slots that have stopped disappear from the status. */
  resize(size: number): void {
    const staying = this.#staying()
    const idleFirst = staying.toSorted(
      (a, b) => Number(a.task !== undefined) - Number(b.task !== undefined) || b.number - a.number,
    )
    for (const slot of idleFirst.slice(0, Math.max(0, staying.length - size))) {
      this.#end(slot, 'TERMINATING_STOP_SIGNAL')
    }
    this.#slots = this.#slots.filter(({ state }) => state !== 'TERMINATED')
    this.#grow(size - staying.length)
    this.#onCapacityChange()
  }

  /**
   * Stops one slot. With `wait`, its attempt may finish. With `hard`, its attempt is stopped and its task is requeued. Returns
   * false if the slot does not exist, or if it is already stopping and there is nothing more to do.
   */
  stop(number: number, how: 'wait' | 'hard'): boolean {
    const slot = this.#slots.find((each) => each.number === number)
    if (slot === undefined || slot.state === 'TERMINATED') return false
    const wasStaying = this.#end(slot, 'TERMINATING_STOP_SIGNAL')
    if (how === 'hard') slot.stop({ reason: 'slot_stopped' })
    this.#onCapacityChange()
    return wasStaying || how === 'hard'
  }

  cancel(id: TaskId, cause: CancelCause = { reason: 'cancelled' }, retriedAt?: number): LocalCancel {
    const isMeant = (task: FetchedTask | undefined): boolean =>
      task?.id === id && (retriedAt === undefined || retriedAt === (retriedAtOf(task.envelope) ?? 0))
    const held = this.#held.get(id)
    if (held !== undefined && isMeant(held.task)) {
      held.task = { ...held.task, cancelled: held.task.cancelled ?? cause }
      held.end()
      return 'cancelling'
    }
    const slot = this.#slots.find(({ task }) => isMeant(task))
    if (slot === undefined) return 'not_found'
    return slot.stop(cause) ? 'cancelling' : 'not_cancellable'
  }

  settled(result: AttemptResult, refusal?: CommitRefusal): void {
    emitSettled(result, refusal, this.#host.sink)
    this.#onSettled(result, refusal)
  }

  released(id: TaskId): void {
    this.#onReleased(id)
  }

  endedAsDead({ id, task }: NamedTask, reason: TaskDeath): void {
    this.#host.sink({ event: 'task.dead', queue: this.#host.queue, task, id, reason })
  }

  /** Closes the context of an attempt that has lost its lock, so that the attempt's handler stops. */
  lockLost(id: TaskId, fencingToken?: number): void {
    const isMeant = (task: FetchedTask): boolean =>
      task.id === id && (fencingToken === undefined || task.fencingToken === fencingToken)
    const slot = this.#slots.find(({ task }) => task !== undefined && isMeant(task))
    slot?.loseLock()
    if (slot !== undefined) this.#resolveQuiet()
    const held = this.#held.get(id)
    if (held === undefined || !isMeant(held.task)) return
    held.hasLostLock = true
    held.end()
  }

  #resolveQuiet(): void {
    if (this.#whenQuiet.length === 0 || !this.isQuiet()) return
    for (const resolve of this.#whenQuiet) resolve()
    this.#whenQuiet = []
  }

  /** Closes the context of every long attempt. Each grace period is at most `maxGraceMs`. */
  closeAll(reason: CloseReason, maxGraceMs: number): void {
    for (const slot of this.#slots) slot.close(reason, maxGraceMs)
  }

  #addStuckHandler(returned: Promise<unknown>): void {
    this.#stuckHandlers++
    this.#onCapacityChange()
    void returned.then(() => {
      this.#stuckHandlers--
      this.#onCapacityChange()
    })
  }

  #staying(): readonly Slot[] {
    return this.#slots.filter(({ state }) => !STOPPING.includes(state))
  }

  #grow(by: number): void {
    const more = Array.from({ length: Math.max(0, by) }, () => new Slot(++this.#made, this.#host))
    this.#slots = [...this.#slots, ...more]
    if (this.#isFetching) this.fetchingBegan()
  }

  /** Stops one slot. Returns true if the slot was not stopping before. */
  #end(slot: Slot, state: Terminating): boolean {
    const isHard = slot.state === 'TERMINATED' || slot.state === 'TERMINATING_PARENT_CTX_CLOSED'
    const isSofter = slot.state === 'TERMINATING_STOP_SIGNAL' && state === 'TERMINATING_TASK_CH_CLOSED'
    if (isHard || isSofter || slot.state === state) return false
    const wasStaying = !STOPPING.includes(slot.state)
    slot.moveTo(state)
    if (slot.task === undefined) {
      const at = this.#idle.indexOf(slot)
      if (at >= 0) this.#idle.splice(at, 1)
      slot.terminate()
    }
    return wasStaying
  }
}
