// Represents one slot of a pool: its state, and the attempt that the slot runs.
import type { SlotState } from '@bullpen/contract'
import { InterruptibleRun } from '../attempt/interruptible-run.ts'
import { type RunnerHost, runAttempt } from '../attempt/runner.ts'
import { SLOT_TRANSITIONS } from '../machines/slot-machine.ts'
import { assertTransition } from '../machines/state-machine.ts'
import type { AttemptResult, CloseReason, StopCause } from '../ports/attempt-result.ts'
import type { Clock } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { SlotStatus } from '../ports/pool-status.ts'
import { ReusableTimer } from '../time/reusable-timer.ts'

/** What a slot passes to its attempts. The slot adds its own number and timer. */
export type SlotHost = Omit<RunnerHost, 'slot' | 'timer'>

/** One slot. This is a class because a pool has many slots and every task uses one. */
export class Slot {
  readonly number: number
  readonly #clock: Clock
  readonly #host: RunnerHost
  readonly #timer: ReusableTimer
  #state: SlotState = 'NEW'
  /** On the monotonic clock. */
  #since: number
  #task: FetchedTask | undefined
  /** The current attempt, if it can be interrupted. */
  #run: InterruptibleRun | undefined
  /** Whether the attempt has ended and its result is being committed. */
  #isCommitting = false
  #hasLostLock = false

  constructor(number: number, host: SlotHost) {
    const timer = new ReusableTimer(host.clock)
    this.number = number
    this.#clock = host.clock
    this.#timer = timer
    this.#host = { ...host, slot: number, timer: (onFire) => timer.lend(onFire) }
    this.#since = host.clock.monotonic()
  }

  get state(): SlotState {
    return this.#state
  }

  /** The task that the slot is running, or whose result the slot is passing on to be committed. */
  get task(): FetchedTask | undefined {
    return this.#task
  }

  /** The task whose attempt has not ended. */
  get runningTask(): FetchedTask | undefined {
    return this.#isCommitting ? undefined : this.#task
  }

  /** Whether the slot runs an attempt that still has its lock. */
  get isRunning(): boolean {
    return this.#task !== undefined && !this.#hasLostLock
  }

  /** Moves the slot to another state. @throws BullpenError `illegal_transition`. */
  moveTo(state: SlotState): void {
    assertTransition('a slot', SLOT_TRANSITIONS, this.#state, state)
    this.#state = state
    this.#since = this.#clock.monotonic()
  }

  /** Assigns a task to the idle slot. */
  take(task: FetchedTask): void {
    this.moveTo('WORKING')
    this.#task = task
  }

  /** Runs one attempt of the task. Returns a promise only if there is something to wait for. Never throws or rejects. */
  run(task: FetchedTask): AttemptResult | Promise<AttemptResult> {
    const running = runAttempt(task, this.#host)
    if (!(running instanceof InterruptibleRun)) return running
    this.#run = running
    return running.result
  }

  /** Marks the attempt as ended. The attempt can no longer be interrupted and is no longer reported as running. */
  commit(): void {
    this.#run = undefined
    this.#isCommitting = true
  }

  /**
   * Removes the task once its result has been passed on to be committed. The slot is then idle again, or TERMINATED if it was
   * stopping.
   */
  release(): void {
    this.#task = undefined
    this.#run = undefined
    this.#isCommitting = false
    this.#hasLostLock = false
    if (this.#state === 'WORKING') this.moveTo('IDLE')
    else this.terminate()
  }

  /** Ends the slot permanently. */
  terminate(): void {
    this.moveTo('TERMINATED')
    this.#timer.close()
  }

  /** Closes the context of the slot's attempt if the attempt can be interrupted. The grace period is at most `maxGraceMs`. */
  close(reason: CloseReason, maxGraceMs?: number): void {
    this.#run?.close(reason, maxGraceMs)
  }

  /** Closes the context of the slot's attempt, which has lost its lock. */
  loseLock(): void {
    this.#hasLostLock = true
    this.close('lock_lost')
  }

  /** Stops the slot's attempt. Returns false if the attempt cannot be interrupted. */
  stop(cause: StopCause): boolean {
    return this.#run?.stop(cause) ?? false
  }

  status(): SlotStatus {
    const task = this.#task
    const timeoutAt = this.#run?.timeoutAt
    return {
      slot: this.number,
      state: this.#state,
      since: Math.round(this.#clock.at(this.#since)),
      task: task && {
        id: task.id,
        task: task.task,
        fencingToken: task.fencingToken,
        ...(timeoutAt !== undefined && { timeoutAt: Math.round(this.#clock.at(timeoutAt)) }),
      },
    }
  }
}
