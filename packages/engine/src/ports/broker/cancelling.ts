// Defines the options of a cancellation, and the filter and progress of a cancellation of many tasks.
import type { CancelReason } from '@bullpen/contract'

export interface CancelOptions {
  /** Whether a running attempt can be stopped: true for long tasks, false for short ones. */
  readonly stoppable: boolean
  /** Who requested the cancellation, for the attempt record. */
  readonly by?: string | undefined
}

/** Selects the tasks of a queue to cancel. */
export interface CancelFilter {
  readonly queue: string
  /** The name of a definition. By default, tasks of any definition match. */
  readonly task?: string | undefined
  /** By default, tasks match whether they have tags or not. */
  readonly tag?: string | undefined
  /** The id of a group, whose members match. By default, tasks match whether they are members of a group or not. */
  readonly group?: string | undefined
  /**
   * Only tasks that were enqueued at this time or earlier match, in ms since 1970 on the clock of the process that enqueued them.
   */
  readonly before: number
  readonly reason: CancelReason
  /** Who requested the cancellation, for the attempt record. Defaults to the name of this process. */
  readonly by?: string | undefined
}

export interface CancelRule extends CancelFilter {
  readonly id: string
  readonly by: string
  /** When the cancellation was requested, in ms since 1970 on the store's clock. */
  readonly at: number
}

export interface CancelProgress {
  readonly rule: CancelRule
  /** The number of tasks that the cancellation has ended while no slot was running them. */
  readonly ended: number
  /** When the cancellation was completed, in ms since 1970. Undefined while there may be matching tasks left. */
  readonly doneAt: number | undefined
}
