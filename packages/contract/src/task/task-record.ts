// Defines the task record, which is a task's current state as the broker returns it.

import type { AttemptRecord } from './attempt-record.ts'
import type { FollowUpKind } from './follow-up.ts'
import type { GroupId } from './group-id.ts'
import type { TaskStatus } from './states.ts'
import type { TaskId } from './task-id.ts'
import type { TraceContext } from './trace-context.ts'
import type { LaneWait, WaitsFor } from './waits-for.ts'

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

/** A follow-up task that has not been enqueued. */
export interface FollowUpNote {
  readonly on: FollowUpKind
  readonly task: string
  readonly queue: string
}

/** The group whose member a task is. */
export interface TaskGroup {
  readonly id: GroupId
  /** The member's number, starting from 0. */
  readonly member: number
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
  /** The trace that the task belongs to. Absent if its caller did not pass one. */
  readonly traceContext?: TraceContext | undefined
  readonly concurrencyKey: string | undefined
  /**
   * Present only while the task is waiting in a fair queue, or needs permits or a service, and only if the task was not read as
   * part of a list.
   */
  readonly waitsFor?: LaneWait
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
  /** The task or the group because of whose end this task was enqueued. */
  readonly followUpOf?: TaskId | GroupId
  /** The tasks that the end of this task will enqueue. Absent if there are none. */
  readonly followUps?: readonly FollowUpNote[]
  /** The queue of each follow-up that the call which enqueued this task has named, at any depth. Absent if the task has no follow-ups. */
  readonly followUpQueues?: readonly string[]
  /** The group whose member the task is, and the member's number, starting from 0. */
  readonly group?: TaskGroup
  /** The registered compensations, in the order of their registration. Absent if there are none, or once the task has ended. */
  readonly compensations?: readonly { readonly task: string; readonly key: string }[]
  /** When the task's first compensation was last released because the task had ended. Absent once the task has completed after a retry. */
  readonly compensatedAt?: number
  /** The dead task in another queue from which this task was copied. */
  readonly retryOf?: TaskId
  /** Identifies the kind of error that made the task dead. Present only if the task is dead. */
  readonly fingerprint?: string
  /** The last ten retries of the task by request, oldest first. Absent if there were none. */
  readonly retries?: readonly TaskRetry[]
}

/** A task with why it does not run. */
export interface ExplainedTask extends Omit<TaskRecord, 'waitsFor'> {
  /** Absent if the task is running or has ended. */
  readonly waitsFor?: WaitsFor
}
