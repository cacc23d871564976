// Defines the filters, requests and counts for dead tasks.
import type { AttemptEndState, DeadTaskAction, TaskId } from '@bullpen/contract'

export interface RetryOptions {
  /** Identifies this request. A repeated call with the same request changes nothing. */
  readonly request: string
  /** Who retries the task, for the task's `retries`. */
  readonly by: string
  /**
   * The new input and the version of the definition against which it was validated. By default, the input stays unchanged.
   */
  readonly edit?: InputEdit | undefined
  /**
   * The copy that has been enqueued in another queue instead. The dead task then stays dead, and only its `retries` change. Requests
   * by filter no longer retry the dead task.
   */
  readonly copy?: TaskId | undefined
  /** Whether to retry the task, or to note the copy, although its compensations were released. Defaults to false. */
  readonly afterCompensation?: boolean | undefined
}

export interface InputEdit {
  readonly input: unknown
  readonly version: number
}

/** Selects dead tasks of a queue. A task matches if it matches every field that is given. */
export interface DeadFilter {
  readonly queue: string
  /** The name of a definition. */
  readonly task?: string | undefined
  /** The final state of the last attempt. */
  readonly state?: AttemptEndState | undefined
  /** The code of the declared failure, or the reason why the last attempt ended. */
  readonly code?: string | undefined
  readonly tag?: string | undefined
  /** The kind of the error. See `errorKind`. */
  readonly fingerprint?: string | undefined
  /** The task died at this time or later, in ms since 1970. */
  readonly endedFrom?: number | undefined
  /** The task died at this time or earlier, in ms since 1970. */
  readonly endedUntil?: number | undefined
  /** A part of the error's message. The letters A to Z match regardless of their case. */
  readonly text?: string | undefined
}

/** A request to retry or delete the dead tasks that match a filter. */
export interface DeadChange {
  readonly action: DeadTaskAction
  readonly filter: DeadFilter
  /** The maximum number of tasks that are changed per second. */
  readonly rate: number
  /** Who sent the request, for the tasks' `retries`. */
  readonly by: string
  /** Whether a retry includes the tasks whose compensations were released. Defaults to false. */
  readonly afterCompensation?: boolean | undefined
  /** How many tasks matched when the request was received. */
  readonly counted: DeadMatches
}

export interface DeadMatches {
  readonly matching: number
  /** False if there are more tasks than were examined. `matching` is then a lower bound. */
  readonly exact: boolean
}

export interface DeadRequest extends DeadChange {
  readonly id: string
  /** When the request was stored, in ms since 1970 on the store's clock. Only tasks that died by then are changed. */
  readonly at: number
}

export interface DeadProgress {
  readonly request: DeadRequest
  /** How many tasks have been retried or deleted. */
  readonly changed: number
  /** When the request was completed or stopped, in ms since 1970. Undefined while there may be matching tasks left. */
  readonly doneAt: number | undefined
  /** Who stopped the request before it was completed. */
  readonly stoppedBy?: string | undefined
}

export interface DeadQuery extends DeadFilter {
  /** A number from 1 to 200. */
  readonly limit: number
  /** The opaque cursor that the previous page returned. */
  readonly cursor: string | undefined
}

/** How many dead tasks of a queue have the same fingerprint. */
export interface FingerprintCount {
  readonly fingerprint: string
  readonly state: string
  readonly code: string
  /** The masked message. */
  readonly message: string
  readonly count: number
  /** When the first and the last of these tasks died, in ms since 1970. */
  readonly oldestAt: number
  readonly newestAt: number
  /** The task that died last. */
  readonly newestId: TaskId
}

/**
 * What a request to retry or delete one dead task has done. `compensated` means that nothing was done, because the task's compensations
 * were released.
 */
export type DeadTaskAnswer = 'done' | 'not_dead' | 'not_found' | 'compensated'
