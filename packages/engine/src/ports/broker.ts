// The port that stores tasks: enqueue, look up, wait, cancel, list and count.
import type { CancelReason, TaskId, TaskRecord, TaskStatus } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'

/** A task on its way into the queue; its id is made before the broker is asked. */
export interface NewTask {
  readonly id: TaskId
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly input: unknown
  readonly maxAttempts: number
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly meta: Readonly<Record<string, string>> | undefined
  readonly tags?: readonly string[] | undefined
  readonly correlationId: string | undefined
  readonly delayMs: number | undefined
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  /** The caller's own queue timeout, counted from when the task is ready: its enqueueing plus its delay. */
  readonly queueMs: number | 'none' | undefined
  /** The caller's own total timeout, counted from the enqueueing. */
  readonly totalMs: number | 'none' | undefined
  /** When the task expires unless it has been started, in ms since 1970; for the index of expiries. */
  readonly expiresAt: number | undefined
}

export interface ListQuery {
  readonly queue: string
  readonly status: TaskStatus
  /** 1 to 200. */
  readonly limit: number
  /** From the previous page; opaque. */
  readonly cursor: string | undefined
}

export interface Page {
  readonly tasks: readonly TaskRecord[]
  readonly next: string | undefined
}

export interface CancelOptions {
  /** Whether an attempt that runs can be stopped: true for long tasks, false for short ones. */
  readonly stoppable: boolean
  /** Who asks, for the attempt record. */
  readonly by?: string | undefined
}

/** Which tasks of a queue are to be cancelled. */
export interface CancelFilter {
  readonly queue: string
  /** A definition's name. Default: any. */
  readonly task?: string | undefined
  /** Default: any tags, or none. */
  readonly tag?: string | undefined
  /** Matches tasks that were enqueued at this time or before, in ms since 1970, by the clock of the process that enqueued. */
  readonly before: number
  readonly reason: CancelReason
  /** Who asks, for the attempt record. Default: the name of this process. */
  readonly by?: string | undefined
}

export interface CancelRule extends CancelFilter {
  readonly id: string
  readonly by: string
  /** When it was requested, in ms since 1970 by the store's clock. */
  readonly at: number
}

export interface CancelProgress {
  readonly rule: CancelRule
  /** How many tasks it has ended that no slot was running. */
  readonly ended: number
  /** In ms since 1970; undefined while tasks that the rule matches may be left. */
  readonly doneAt: number | undefined
}

/**
 * Stores tasks. Every method rejects with BullpenError `redis_unavailable` within the broker's command timeout when the store
 * cannot be reached.
 */
export interface Broker {
  /** Stores the task. Idempotent by id. One round trip. When it rejects, the task may have been stored all the same. */
  enqueue(task: NewTask): Promise<void>
  /** The task in its present state, or undefined. One round trip, however long the queue. */
  find(id: TaskId): Promise<TaskRecord | undefined>
  /** The task once its status is final, or in its present state when the signal aborts; undefined when it does not exist. */
  waitUntilFinished(id: TaskId, signal: AbortSignal): Promise<TaskRecord | undefined>
  /** Ends a task that no slot runs; asks the worker of a running one to stop it, durably. Atomic; one round trip; idempotent. */
  cancel(id: TaskId, options: CancelOptions): Promise<CancelAnswer>
  /**
   * Cancels every task that the filter matches; tasks that are enqueued later are not matched. The rule is stored first. When
   * this resolves, no matching task starts any more on any worker, and each is reported as cancelled; ending those that wait
   * takes longer, see {@link cancelProgress}. Running attempts are signalled if they can be stopped; the others finish, and are
   * not retried. Takes some ms, and up to 2.5 s when a worker does not answer. Idempotent. When it rejects, the rule may have
   * been stored. @throws BullpenError `queue_not_found`.
   */
  cancelMany(filter: CancelFilter): Promise<CancelRule>
  /** How far a cancel by filter has got; undefined when its id is unknown, or a day after it was done. One round trip. */
  cancelProgress(id: string): Promise<CancelProgress | undefined>
  /** @throws BullpenError `invalid_cursor` for a cursor of another listing. */
  list(query: ListQuery): Promise<Page>
  /** How many tasks of a queue are in each status. `retrying` tasks count as scheduled: they share a set. One round trip. */
  counts(queue: string): Promise<Readonly<Record<TaskStatus, number>>>
  /** Rejects when the store does not answer. One round trip. */
  ping(): Promise<void>
  close(): Promise<void>
}
