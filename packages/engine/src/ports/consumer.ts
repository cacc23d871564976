// Defines the port that fetches tasks for a pool and commits the verdicts on them.
import type { CommitRefusal, Progress, TaskEvent, TaskId } from '@bullpen/contract'
import type { Apart } from '../quarantine/decision.ts'
import type { AttemptResult, CancelCause } from './attempt-result.ts'
import type { AttemptEvents } from './events.ts'
import type { PayloadCodec } from './payload-codec.ts'
import type { StoredSteps } from './steps.ts'

/** A task that a consumer has fetched. The consumer holds the task's lock. */
export interface FetchedTask {
  readonly id: TaskId
  readonly task: string
  /** The envelope in its stored form, before it is decoded. */
  readonly envelope: unknown
  /** Decodes the input if it was encoded by a codec. */
  readonly codec?: PayloadCodec | undefined
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  /** A number that starts at 1 and increases with every attempt, whether the attempt counts or not. */
  readonly fencingToken: number
  /** The number of this attempt, starting from 1. Only attempts that count against the retry policy increase the number. */
  readonly attempt: number
  readonly maxAttempts: number
  /** When the task became ready (its enqueueing time plus its delay), in ms since 1970. Known only for the first attempt. */
  readonly readyAt: number | undefined
  /** Set if the task was cancelled before it could start. The task must then not start. */
  readonly cancelled?: CancelCause | undefined
  /** Set if the task is quarantined. */
  readonly quarantine?: TaskQuarantine | undefined
  /** How the pool runs a quarantined task. `poison` means that the task must not start and is dead. Set by the pool. */
  readonly apart?: Apart | 'poison' | undefined
  /** Undefined if the task has no events. */
  readonly events?: AttemptEvents | undefined
  progress(progress: Progress): Promise<void>
  readonly steps: StoredSteps
}

/**
 * The state of a task that is quarantined because a process that ran it has died. The quarantine ends when the task ends an attempt
 * by itself.
 */
export interface TaskQuarantine {
  /** How many processes have died because of the task, as far as is known. At least 1. */
  readonly deaths: number
  /**
   * Stores that the task is about to run alone in this process. If the process dies before this is stored, the death is not counted
   * for the task. Returns false if nothing was stored because the lock is lost. Takes one round trip.
   */
  startAlone(): Promise<boolean>
}

/**
 * Runs a fetched task and calls `commit` with the result before releasing the slot. If no slot may take the task, calls `release`
 * instead, and the task returns to its queue as if it had not been fetched. If `release` is called with a delay, the task waits for
 * `delayMs` in the store, and then returns to the head of its queue. Resolves with the value that `commit` or `release` returned.
 */
export type RunTask = <T>(
  task: FetchedTask,
  commit: (result: AttemptResult) => T | Promise<T>,
  release: (delayMs?: number) => T | Promise<T>,
) => Promise<T>

/** Limits a consumer to some of the tasks of its queue. The consumer calls these methods. */
export interface Candidates {
  /**
   * Returns the tasks of which the next fetch may take one that waits. Tasks without a priority are taken first, in this order, then
   * those with the highest priority. If there are none, the fetch takes nothing.
   */
  next(): readonly TaskId[]
  /** Reports that a task has been fetched. It is not a candidate until it is returned. */
  fetched(id: TaskId): void
  /** Reports that the attempt of a fetched task is over. */
  returned(id: TaskId): void
  /**
   * Reports that none of the last candidates waits. Resolves when it is time for the next fetch, which is at once if there are other
   * candidates. Resolves with false if the consumer has stopped.
   */
  noneWaits(): Promise<boolean>
  /** Reports that the consumer has stopped. Idempotent. */
  stop(): void
}

/** The fields that identify a task in reports and log lines. */
export interface NamedTask {
  readonly id: string
  readonly task: string
}

/**
 * How a pool responded to a cancellation. `cancelling` means that the attempt has been signalled and its verdict follows.
 * `not_cancellable` means that the attempt cannot be stopped, because the task is short or its result is being committed.
 * `not_found` means that this pool is not running the task.
 */
export type LocalCancel = 'cancelling' | 'not_cancellable' | 'not_found'

/** Why the store declared a task dead instead of starting it again. */
export type TaskDeath = Extract<TaskEvent, { event: 'task.dead' }>['reason']

/** The methods of a pool that its consumer may call. */
export interface ConsumerHost {
  /**
   * Reports that a fetch has failed, or that the connection is lost. The consumer fetches again by itself, and calls `fetchingResumed` once
   * that works. Idempotent.
   */
  fetchingFailed(): void
  /** Reports that fetching works again, `afterMs` after it had failed, or that the connection is back, which the log has already said. */
  fetchingResumed(afterMs: number | undefined): void
  /**
   * Reports that the task's lock has been lost, and that another worker may hold the lock now. `fencingToken` identifies the
   * attempt that lost the lock, since this pool may already be running the next attempt. Defaults to whichever attempt is
   * currently running.
   */
  lockLost(id: TaskId, fencingToken?: number): void
  /**
   * Reports the result of a commit. The store has confirmed the commit or, if `refusal` is given, will never carry it out for
   * that reason. The consumer calls this method once for each result, when the store has responded, and never if the response
   * does not arrive. For the verdict `lost`, the consumer calls this method without asking the store.
   */
  settled(result: AttemptResult, refusal?: CommitRefusal): void
  /**
   * Reports that a task has returned to its queue because no slot took it. The consumer calls this method when the store has
   * confirmed the release. If the store refuses the release because the task has another owner, or if the response does not
   * arrive, the consumer does not call this method.
   */
  released(id: TaskId): void
  /**
   * Reports that a fetched task is dead, and that the store ended the task instead of letting it start again. The consumer calls
   * this method when the store has confirmed the end.
   */
  endedAsDead(task: NamedTask, reason: TaskDeath): void
  /**
   * Cancels the task if this pool is running it. `cause` defaults to a request by an unknown caller. `retriedAt` identifies the run of
   * the task that is cancelled, since this pool may already be running the task again after a retry by request: it is the time of the
   * last such retry before the cancellation, in ms since 1970, or 0 if there was none. Defaults to whichever run this pool has.
   */
  cancel(id: TaskId, cause?: CancelCause, retriedAt?: number): LocalCancel
  /** Returns the tasks that this pool is running. */
  tasks(): readonly FetchedTask[]
}

export interface Consumer {
  /** Waits until the store is available, however long that takes. */
  open(): Promise<void>
  /**
   * Fetches tasks until the consumer is stopped. Rejects on a failure that the consumer cannot recover from. The consumer may
   * then be opened and run again.
   */
  run(): Promise<void>
  /** Sets how many tasks the consumer may hold at once. 0 pauses fetching. */
  resize(slots: number): void
  /** Returns a human-readable reason why the store cannot be used, or undefined if it can be used. */
  notReady(): string | undefined
  /** Stops fetching. Resolves when every fetched task has ended and its result is committed, which may never happen. */
  stop(): Promise<void>
  /** Returns the fetched tasks whose commits the store has not confirmed. */
  unconfirmed(): readonly NamedTask[]
  /** Releases the connections at once. */
  close(): void
}
