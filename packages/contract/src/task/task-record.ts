// A task in its present state: what the broker reads and the API shows.
import type { AttemptRecord } from './attempt-record.ts'
import type { TaskStatus } from './states.ts'
import type { TaskId } from './task-id.ts'

export interface Progress {
  /** From 0 to 1. */
  readonly fraction: number
  readonly note?: string | undefined
}

/** Times are milliseconds since 1970. */
export interface TaskRecord {
  readonly id: TaskId
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly status: TaskStatus
  /** How many attempts there have been, counted or not. */
  readonly fencingToken: number
  /** Attempts that count against the retry policy. */
  readonly attemptsMade: number
  readonly maxAttempts: number
  readonly input: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly tags: readonly string[]
  readonly correlationId: string | undefined
  readonly enqueuedAt: number
  /** When it becomes ready; while it is scheduled or retrying. */
  readonly dueAt: number | undefined
  /** When the newest attempt started. */
  readonly startedAt: number | undefined
  /** When it reached its final status. */
  readonly endedAt: number | undefined
  /** As last reported; until the task ends. */
  readonly progress: Progress | undefined
  /** The names of its finished steps, in no particular order; absent when there are none. */
  readonly steps?: readonly string[]
  /** Present when the task is completed. */
  readonly output: unknown
  /** The attempt records, oldest first; at most the newest ten. */
  readonly attempts: readonly AttemptRecord[]
}
