// A slot: one slot of a pool, its state, and the attempt that it runs.
import type { SlotState } from '@bullpen/contract'
import type { CloseReason, StopCause } from '../ports/attempt-result.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { SlotStatus } from '../ports/pool-status.ts'
import { SLOT_TRANSITIONS } from './slot-machine.ts'
import { assertTransition } from './state-machine.ts'

/** A running long attempt, as its pool sees it. Each of these, after the first one or after the end, changes nothing. */
export interface Interruption {
  /** Closes the attempt's context: the handler is signalled and has the grace period to end. */
  close(reason: CloseReason, graceAtMostMs?: number): void
  /** As `close`, for a cancel of this task or a hard stop of its slot. */
  stop(cause: StopCause): void
  /** Its slot's timer rang. */
  onTimer(): void
  /** When its run timeout passes, on the monotonic clock; undefined where it has none. */
  readonly timeoutAt: number | undefined
}

/** A class, since a pool holds many and touches one twice for every task. */
export class Slot {
  readonly number: number
  /** What it runs, if anything. */
  task: FetchedTask | undefined
  /** The attempt has ended; what follows is being written down. */
  concluded = false
  /** Of its long attempt, once that waits for something. */
  interruption: Interruption | undefined
  readonly #clock: Clock
  #state: SlotState = 'NEW'
  /** On the monotonic clock. */
  #since: number
  #timer: Timer | undefined

  constructor(number: number, clock: Clock) {
    this.number = number
    this.#clock = clock
    this.#since = clock.monotonic()
  }

  get state(): SlotState {
    return this.#state
  }

  /** `at`: now, on the monotonic clock. @throws BullpenError `illegal_transition`. */
  moveTo(state: SlotState, at = this.#clock.monotonic()): void {
    assertTransition('a slot', SLOT_TRANSITIONS, this.#state, state)
    this.#state = state
    this.#since = at
  }

  /** One timer for all attempts of this slot, one after the other: making one for each costs as much as a short task. */
  get timer(): Timer {
    this.#timer ??= this.#clock.timer(() => this.interruption?.onTimer())
    return this.#timer
  }

  status(): SlotStatus {
    const { number, task } = this
    const timeoutAt = this.interruption?.timeoutAt
    return {
      slot: number,
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

  /** Nothing of it is left behind. */
  close(): void {
    this.#timer?.close()
  }
}
