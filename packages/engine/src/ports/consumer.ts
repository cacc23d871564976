// The port that fetches tasks for a pool and commits their verdicts.
import type { Progress, TaskId } from '@bullpen/contract'
import type { AttemptResult, CancelCause } from './attempt-result.ts'
import type { StoredSteps } from './steps.ts'

/** A task that a consumer has fetched: it holds the task's lock. */
export interface FetchedTask {
  readonly id: TaskId
  readonly task: string
  /** As stored, not yet decoded. */
  readonly envelope: unknown
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  /** Grows with every attempt, counted or not; from 1. */
  readonly fencingToken: number
  /** Numbers the attempts that count against the retry policy; from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** When the task became ready, its enqueueing plus its delay, in ms since 1970. Known for the first attempt only. */
  readonly readyAt: number | undefined
  /** The task was cancelled before it was fetched: it must not start. */
  readonly cancelled?: CancelCause | undefined
  progress(progress: Progress): Promise<void>
  readonly steps: StoredSteps
}

/**
 * Runs a fetched task and then calls `commit` with the result, while the slot still holds the task. Calls `release` instead
 * when no slot may take the task: it goes back as if it had not been fetched. Resolves with what the one that was called
 * returned.
 */
export type RunTask = <T>(
  task: FetchedTask,
  commit: (result: AttemptResult) => T | Promise<T>,
  release: () => T | Promise<T>,
) => Promise<T>

/** A task, as reports and log lines name it. */
export interface NamedTask {
  readonly id: string
  readonly task: string
}

/**
 * What a pool did about a cancel. `cancelling`: the attempt has been signalled; its verdict follows. `not_cancellable`: a
 * short task, which cannot be stopped. `not_found`: this pool does not run the task.
 */
export type LocalCancel = 'cancelling' | 'not_cancellable' | 'not_found'

/** What a consumer may ask of its pool. */
export interface ConsumerHost {
  /**
   * The lock of the task is lost: another worker may own it by now. `fencingToken`: of the attempt that lost it, because
   * this pool may already run the next one. Default: whichever runs.
   */
  lockLost(id: TaskId, fencingToken?: number): void
  /** Cancels the task if this pool runs it. Default cause: a request by an unknown caller. */
  cancel(id: TaskId, cause?: CancelCause): LocalCancel
  /** What this pool runs now. */
  tasks(): readonly FetchedTask[]
}

export interface Consumer {
  /** Waits for the store for as long as that takes. */
  open(): Promise<void>
  /** Fetches until it is stopped. Rejects on a failure that it cannot recover from; it may then be opened and run again. */
  run(): Promise<void>
  /** How many tasks may be held at once; 0 pauses fetching. */
  resize(slots: number): void
  /** Why the store cannot be used, for people; undefined when it can. */
  notReady(): string | undefined
  /** Stops fetching. Resolves when every fetched task has ended and is committed, which may never happen. */
  stop(): Promise<void>
  /** Tasks that were fetched and whose commit the store has not confirmed. */
  unconfirmed(): readonly NamedTask[]
  /** Releases the connections at once. */
  close(): void
}
