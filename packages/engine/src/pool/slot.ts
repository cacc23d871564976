// A worker: one slot of a pool, its state, and the attempt that it runs.
import type { EndReason, WorkerState } from '@bullpen/contract'
import type { Clock, TakenTask, Timer } from '../ports/ports.ts'
import { WORKER_TRANSITIONS } from './slot-machine.ts'
import { assertTransition } from './state-machine.ts'

export type CloseReason = Exclude<EndReason<'TERMINATED_CTX_CLOSED'>, 'snoozed' | 'rate_limited'>

/** A running long attempt, as its pool sees it. Each of these, after the first one or after the end, changes nothing. */
export interface Interruption {
  /** Closes the attempt's context: the handler is signalled and has the grace period to end. */
  close(reason: CloseReason, graceAtMostMs?: number): void
  /** As `close`, for a cancel of this task or a hard stop of its worker. */
  stop(reason: EndReason<'TERMINATED_STOP_SIGNAL'>): void
  /** Its worker's timer rang. */
  rang(): void
  /** When its run timeout passes, on the monotonic clock; undefined where it has none. */
  readonly endsBy: number | undefined
}

/** What is told of a worker. */
export interface WorkerStatus {
  /** From 1. */
  readonly worker: number
  readonly state: WorkerState
  /** Milliseconds since 1970. */
  readonly since: number
  readonly task:
    | {
        readonly id: string
        readonly task: string
        readonly start: number
        /** When its run timeout passes, in ms since 1970; undefined where it has none. */
        readonly endsBy?: number | undefined
      }
    | undefined
}

/** A class, since a pool holds many and touches one twice for every task. */
export class Worker {
  readonly number: number
  /** What it runs, if anything. */
  task: TakenTask | undefined
  /** The attempt has ended; what follows is being written down. */
  concluded = false
  /** Of its long attempt, once that waits for something. */
  interruption: Interruption | undefined
  readonly #clock: Clock
  #state: WorkerState = 'NEW'
  /** On the monotonic clock. */
  #since: number
  #timer: Timer | undefined

  constructor(number: number, clock: Clock) {
    this.number = number
    this.#clock = clock
    this.#since = clock.monotonic()
  }

  get state(): WorkerState {
    return this.#state
  }

  /** `at`: now, on the monotonic clock. @throws BullpenError `illegal_transition`. */
  moveTo(state: WorkerState, at = this.#clock.monotonic()): void {
    assertTransition('a worker', WORKER_TRANSITIONS, this.#state, state)
    this.#state = state
    this.#since = at
  }

  /** One timer for all attempts of this worker, one after the other: making one for each costs as much as a short task. */
  get timer(): Timer {
    this.#timer ??= this.#clock.timer(() => this.interruption?.rang())
    return this.#timer
  }

  status(): WorkerStatus {
    const { number, task } = this
    const endsBy = this.interruption?.endsBy
    return {
      worker: number,
      state: this.#state,
      since: Math.round(this.#clock.at(this.#since)),
      task: task && {
        id: task.id,
        task: task.task,
        start: task.start,
        ...(endsBy !== undefined && { endsBy: Math.round(this.#clock.at(endsBy)) }),
      },
    }
  }

  /** Nothing of it is left behind. */
  close(): void {
    this.#timer?.close()
  }
}
