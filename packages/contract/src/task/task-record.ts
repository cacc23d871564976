// Defines the task record, which is a task's current state as the broker returns it.
import type { AttemptRecord } from './attempt-record.ts'
import type { TaskStatus } from './states.ts'
import type { TaskId } from './task-id.ts'

export interface Progress {
  /** From 0 to 1. */
  readonly fraction: number
  readonly note?: string | undefined
}

/** A request to run a dead task again. */
export interface TaskRetry {
  /** Milliseconds since 1970, on the store's clock. */
  readonly at: number
  /** Who retried the task. */
  readonly by: string
  /** The task that was enqueued in another queue instead. Absent if the task itself was retried. */
  readonly copy?: TaskId
}

/** Times are in milliseconds since 1970. */
export interface TaskRecord {
  readonly id: TaskId
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly status: TaskStatus
  /** How many attempts have been started, counted or not. */
  readonly fencingToken: number
  /** How many attempts have counted against the retry policy. */
  readonly attemptsMade: number
  readonly maxAttempts: number
  /** From 0 to 9. Waiting tasks with a smaller number start first. */
  readonly priority: number
  readonly input: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly tags: readonly string[]
  readonly correlationId: string | undefined
  readonly concurrencyKey: string | undefined
  readonly enqueuedAt: number
  /** When the task becomes ready. Present only while it is scheduled or retrying. */
  readonly dueAt: number | undefined
  /** When the latest attempt started. */
  readonly startedAt: number | undefined
  /** When the task reached its final status. */
  readonly endedAt: number | undefined
  /** The last reported progress. Present only until the task ends. */
  readonly progress: Progress | undefined
  /** The names of the finished steps, in no particular order. Absent if there are none. */
  readonly steps?: readonly string[]
  /** Present only if the task is completed. */
  readonly output: unknown
  /** The last ten attempt records, oldest first. */
  readonly attempts: readonly AttemptRecord[]
  /** The dead task in another queue from which this task was copied. */
  readonly retryOf?: TaskId
  /** Identifies the kind of error that made the task dead. Present only if the task is dead. */
  readonly fingerprint?: string
  /** The last ten retries of the task by request, oldest first. Absent if there were none. */
  readonly retries?: readonly TaskRetry[]
}
