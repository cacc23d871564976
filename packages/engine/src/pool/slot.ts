// A slot: runs one attempt at a time, and keeps that attempt and its timer.
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

/** What a slot gives to its attempts; it adds its own number and timer. */
export type SlotHost = Omit<RunnerHost, 'slot' | 'timer'>

/** A class, because a pool has many and uses one for every task. */
export class Slot {
  readonly number: number
  readonly #clock: Clock
  readonly #host: RunnerHost
  readonly #timer: ReusableTimer
  #state: SlotState = 'NEW'
  /** On the monotonic clock. */
  #since: number
  #task: FetchedTask | undefined
  /** The attempt, while it can be interrupted. */
  #run: InterruptibleRun | undefined
  /** The attempt has ended, and its result is being committed. */
  #isCommitting = false

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

  /** The task that it runs or commits. */
  get task(): FetchedTask | undefined {
    return this.#task
  }

  /** The task whose attempt has not ended. */
  get runningTask(): FetchedTask | undefined {
    return this.#isCommitting ? undefined : this.#task
  }

  /** @throws BullpenError `illegal_transition`. */
  moveTo(state: SlotState): void {
    assertTransition('a slot', SLOT_TRANSITIONS, this.#state, state)
    this.#state = state
    this.#since = this.#clock.monotonic()
  }

  /** Gives the idle slot a task. */
  take(task: FetchedTask): void {
    this.moveTo('WORKING')
    this.#task = task
  }

  /** Runs one attempt of its task; a promise only when there is something to wait for. Never throws or rejects. */
  run(task: FetchedTask): AttemptResult | Promise<AttemptResult> {
    const running = runAttempt(task, this.#host)
    if (!(running instanceof InterruptibleRun)) return running
    this.#run = running
    return running.result
  }

  /** The attempt has ended: it can no longer be interrupted, and is not reported as running. */
  commit(): void {
    this.#run = undefined
    this.#isCommitting = true
  }

  /** Takes the task away when its result is committed: the slot is idle again, or TERMINATED if it was to stop. */
  release(): void {
    this.#task = undefined
    this.#run = undefined
    this.#isCommitting = false
    if (this.#state === 'WORKING') this.moveTo('IDLE')
    else this.terminate()
  }

  /** Ends the slot for good. */
  terminate(): void {
    this.moveTo('TERMINATED')
    this.#timer.close()
  }

  /** Closes the context of its attempt, if that can be interrupted, with at most `maxGraceMs` of grace. */
  close(reason: CloseReason, maxGraceMs?: number): void {
    this.#run?.close(reason, maxGraceMs)
  }

  /** Stops its attempt. False when it cannot be interrupted. */
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
