// Defines the port that stores tasks. Tasks can be enqueued, looked up, awaited, cancelled, listed and counted.
import type {
  AttemptEndState,
  Backoff,
  CancelReason,
  DeadTaskAction,
  Enqueued,
  OnConflict,
  QueueLimits,
  TaskId,
  TaskRecord,
  TaskStatus,
} from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import type { Schedules } from './schedules.ts'

/**
 * Which calls can enqueue a task with a given id. If the reply to a call was lost, the broker uses this information to recognise
 * the task that it has already stored for the same call.
 *
 * - `only`: the id was generated at random for this call, so no other call has it.
 * - `token`: the id was derived or chosen, so other calls may have it, too. Each of these callers has a different token, which is
 *   stored with the task.
 */
export type Caller = 'only' | { readonly token: string }

/**
 * Makes an enqueue idempotent: later calls with the same `key` receive the id of the first call's task, before, during and after
 * the task's run. A key applies only within its queue.
 */
export interface Idempotency {
  /** A digest of the caller's key and identity, as 22 characters of base64url. */
  readonly key: string
  /** A digest of the request, as 11 characters of base64url. A different request with the same key is rejected. */
  readonly request: string
  /** The minimum time for which the first call is remembered, in seconds. The call may be remembered for up to a half longer. */
  readonly life: number
}

/** A unique key. While a task has the key, no other task of the same definition can have it. */
export interface UniqueKey {
  /** 1 to 128 characters. */
  readonly key: string
  /**
   * How long the task has the key: until its first attempt starts, until the task ends, or for a number of milliseconds from now.
   */
  readonly until: 'started' | 'finished' | number
  readonly onConflict: OnConflict
  /**
   * The time limit, in ms, from the enqueue of the task that has the key to that task's postponed start. The limit is the
   * definition's or the call's total timeout.
   */
  readonly maxDelayMs: number | undefined
}

/** A task that is about to be enqueued. Its id is generated before the broker is called. */
export interface NewTask {
  readonly id: TaskId
  /** If omitted, a task that already exists counts as another caller's. */
  readonly caller?: Caller | undefined
  /**
   * Whether an earlier call with this id may have stored the task. If so, and the task has been deleted since, nothing is stored as
   * long as the call is made within 20 s of the task's enqueue. Defaults to false.
   */
  readonly isRepeat?: boolean | undefined
  /** If omitted, every call stores a task of its own. */
  readonly idempotency?: Idempotency | undefined
  readonly unique?: UniqueKey | undefined
  /**
   * The queue's limits. If one of them is reached, the task is refused. If omitted, the task is refused only if a limit of the
   * broker itself is reached. Workers' brokers do not have any limits.
   */
  readonly limits?: QueueLimits | undefined
  /**
   * If true, the queue counts as full: the call resolves only if an earlier call has stored the task, or if another task has its
   * unique key. Otherwise, the task is refused with QueueFullError.
   */
  readonly onlyExisting?: boolean
  /** The name of the request's API key, to which `limits.perApiKey` applies. If omitted, `limits.perApiKey` does not apply. */
  readonly apiKeyName?: string | undefined
  /** Whether the task's child tasks may be counted for its API key, so that the key's name is stored with the task. Defaults to false. */
  readonly passesOnApiKey?: boolean | undefined
  /** The dead task in another queue from which this task is copied. */
  readonly retryOf?: TaskId | undefined
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly input: unknown
  readonly maxAttempts: number
  /** The caller's own backoff. By default, the backoff of the definition applies. */
  readonly backoff?: Backoff | undefined
  /** From 0 to 9. Waiting tasks with a smaller number start first. */
  readonly priority: number
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly meta: Readonly<Record<string, string>> | undefined
  readonly tags?: readonly string[] | undefined
  readonly correlationId: string | undefined
  readonly concurrencyKey: string | undefined
  readonly delayMs: number | undefined
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  /** The caller's own queue timeout, which starts when the task becomes ready: at its enqueueing time plus its delay. */
  readonly queueMs: number | 'none' | undefined
  /** The caller's own total timeout, which starts when the task is enqueued. */
  readonly totalMs: number | 'none' | undefined
  /** When the task expires unless it has been started, in ms since 1970. Used for the index of expiries. */
  readonly expiresAt: number | undefined
}

export interface ListQuery {
  readonly queue: string
  readonly status: TaskStatus
  /** A number from 1 to 200. */
  readonly limit: number
  /** The opaque cursor that the previous page returned. */
  readonly cursor: string | undefined
}

export interface Page {
  readonly tasks: readonly TaskRecord[]
  readonly next: string | undefined
}

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

export interface RetryOptions {
  /** Distinguishes this request from others. A repeated call with the same request changes nothing. */
  readonly request: string
  /** Who retries the task, for the task's history. */
  readonly by: string
  /**
   * The new input and the version of the definition against which it was validated. By default, the input stays unchanged.
   */
  readonly edit?: InputEdit | undefined
  /**
   * The task that has been enqueued in another queue instead. The dead task then stays dead, and only its history changes. Requests
   * by filter no longer retry the task.
   */
  readonly copy?: TaskId | undefined
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
  /** Who sent the request, for the tasks' history. */
  readonly by: string
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
  /** When the request was completed, in ms since 1970. Undefined while there may be matching tasks left. */
  readonly doneAt: number | undefined
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

/** What a request concerning one dead task has done. */
export type DeadTaskAnswer = 'done' | 'not_dead' | 'not_found'

/** The counters of a queue. All but `bytes` only increase. */
export interface QueueTotals {
  /**
   * The number of bytes that the unfinished tasks take: the size of each task's stored string, plus 512 bytes for the other data
   * that the store keeps for the task.
   */
  readonly bytes: number
  /** The total number of tasks that have been added. */
  readonly accepted: number
  /** The total number of tasks that have been deleted, for example by retention. */
  readonly removed: number
  /**
   * The number of repairs: of entries in the status index, of uncounted tasks, and of `bytes`. This number stays 0 unless plain
   * BullMQ uses the queue.
   */
  readonly drift: number
  /**
   * `accepted` minus `removed` and minus the tasks in all statuses, all read at the same moment. The result is 0 unless a repair
   * is due.
   */
  readonly unaccounted: number
}

/**
 * Stores tasks. If the store is unreachable, every method rejects with BullpenError `redis_unavailable` within the broker's
 * command timeout.
 */
export interface Broker {
  /**
   * Stores the task with its queue timeout. The call is atomic and takes one round trip. It is idempotent by id: if a task with
   * this id exists, that task is left unchanged. The action is then `created` if this caller has stored the task, and `existing`
   * if another caller has. If another task has the task's unique key, `onConflict` decides what happens. If the promise
   * rejects, the task may nevertheless have been stored, unless the error code says that it was refused.
   *
   * @throws QueueFullError if one of the task's `limits` is reached. The decision and the add are one atomic step, so that any
   * number of concurrent callers together never exceed a limit.
   * @throws EnqueueRateError if the task's API key has reached its enqueue rate in the queue.
   * @throws BullpenError `queue_not_found`, `queue_draining`, `redis_full`, `unsafe_redis` if the store may delete tasks,
   * `idempotency_key_reused` if another request had this idempotency key, `idempotency_full` if there is no memory for a record of the
   * key, `unique_key_taken` if another task has this unique key and `onConflict` is 'error', or `payload_too_large` if what would be stored exceeds the broker's size limit or the queue's `maxBytes`.
   */
  enqueue(task: NewTask): Promise<Enqueued>
  /**
   * Enqueues each task as {@link enqueue} does, and resolves with each task's own result, in the same order. A refused task does
   * not affect the others. The call takes two round trips, regardless of the number of tasks. The promise never rejects.
   */
  enqueueBulk(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<Enqueued>[]>
  /**
   * Enqueues either all of these tasks or none of them. The tasks must belong to one queue, and have different ids and different
   * idempotency keys. The call is atomic and takes one round trip. It is idempotent like {@link enqueue}. If the promise rejects,
   * all tasks may nevertheless have been stored, unless the error code says that they were refused.
   *
   * @throws BullpenError like {@link enqueue}, and `payload_too_large` if there are too many tasks. If a single task is the reason,
   * the error's pointer begins with that task's index, such as `/3`.
   */
  enqueueAll(tasks: readonly NewTask[]): Promise<readonly Enqueued[]>
  /** Returns the task's current state, or undefined. Takes one round trip, regardless of the length of the queue. */
  find(id: TaskId): Promise<TaskRecord | undefined>
  /**
   * Resolves with the task once its status is final, or with its current state when the signal aborts. Resolves with undefined if
   * the task does not exist.
   */
  waitUntilFinished(id: TaskId, signal: AbortSignal): Promise<TaskRecord | undefined>
  /**
   * Cancels a task. If no slot is running the task, the task ends at once. Otherwise, a durable request tells the task's worker
   * to stop the attempt. The call is atomic and idempotent, and takes one round trip.
   */
  cancel(id: TaskId, options: CancelOptions): Promise<CancelAnswer>
  /**
   * Cancels every task that the filter matches, except tasks that are enqueued later. The rule is stored first. Once the promise
   * has resolved, no matching task starts on any worker, and each matching task is reported as cancelled. Ending the waiting
   * tasks takes longer; see {@link cancelProgress}. Running attempts that can be stopped receive an abort signal, unless the
   * reason is `queue_shutdown`. The other running attempts finish and are not retried. The call takes a few milliseconds, or up
   * to 2.5 s if a worker does not respond. It is idempotent. If the promise rejects, the rule may nevertheless have been stored.
   *
   * @throws BullpenError `queue_not_found`, or `too_many_cancels` if the queue has 200 rules that have not finished (210 if the reason
   * is `queue_shutdown`).
   */
  cancelMany(filter: CancelFilter): Promise<CancelRule>
  /**
   * Returns the progress of a cancel by filter, or undefined if the id is unknown or the cancellation was completed more than 24
   * hours ago. Takes one round trip.
   */
  cancelProgress(id: string): Promise<CancelProgress | undefined>
  /**
   * Runs a dead task again. The task keeps its id, its attempt records and the results of its finished steps, and waits behind the
   * other tasks of its queue. It gets all attempts of its retry policy again, its total timeout starts again, and its fencing
   * token continues to increase. The limits of the queue do not apply. The call is atomic and idempotent, and takes one round trip,
   * or two with a new input.
   *
   * @throws BullpenError `payload_too_large` if the task would exceed the broker's size limit with the new input.
   */
  retry(id: TaskId, options: RetryOptions): Promise<DeadTaskAnswer>
  /** Deletes a dead task. The call is atomic and takes one round trip. */
  deleteDead(id: TaskId): Promise<DeadTaskAnswer>
  /**
   * Lists the dead tasks that match a filter, newest first. One call examines a limited number of tasks, so a page may have fewer
   * tasks than requested, or none, although more pages follow.
   *
   * @throws BullpenError `queue_not_found`, or `invalid_cursor` if the cursor comes from another listing.
   */
  searchDead(query: DeadQuery): Promise<Page>
  /**
   * Counts a queue's dead tasks by fingerprint, the largest count first. A queue has at most 1,000 fingerprints, and the tasks with
   * further kinds of errors are counted together as `other`. With `limit`, only this many of the largest counts are returned. The
   * call takes constant time for each fingerprint, and one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  countDead(queue: string, limit?: number): Promise<readonly FingerprintCount[]>
  /**
   * Counts the dead tasks that match a filter. Examines at most 200,000 tasks, or any number if the filter selects only by
   * fingerprint and time.
   *
   * @throws BullpenError `queue_not_found`.
   */
  countMatchingDead(filter: DeadFilter): Promise<DeadMatches>
  /**
   * Retries or deletes the dead tasks that match a filter and have died so far, oldest first, at a limited rate. The call only
   * stores the request. Its tasks are changed afterwards, each of them once, even if processes are killed in the meantime; see
   * {@link deadProgress}. Tasks that were cancelled or have expired are not dead, and never match.
   *
   * @throws BullpenError `queue_not_found`, or `too_many_dead_task_requests` if the queue has 100 requests that have not finished.
   */
  changeDead(change: DeadChange): Promise<DeadRequest>
  /**
   * Returns the progress of {@link changeDead}, or undefined if the id is unknown or the request was completed more than 24 hours
   * ago. Takes one round trip.
   */
  deadProgress(id: string): Promise<DeadProgress | undefined>
  /**
   * Lists a queue's tasks in one status, one page at a time. @throws BullpenError `invalid_cursor` if the cursor comes from
   * another listing.
   */
  list(query: ListQuery): Promise<Page>
  /**
   * Counts a queue's tasks in each status, all at the same moment. The call takes constant time and one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  counts(queue: string): Promise<Readonly<Record<TaskStatus, number>>>
  /**
   * Returns how many tasks the queue has accepted and removed, and how many bytes its unfinished tasks take. The call takes
   * constant time and one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  totals(queue: string): Promise<QueueTotals>
  /**
   * Returns how many retries of each of these definitions wait because of the definition's retry budget, in the same order. A task
   * that was cancelled in the meantime may be counted until its retry would have started. Takes one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  heldRetries(queue: string, tasks: readonly string[]): Promise<readonly number[]>
  /** Enqueues tasks at regular times. */
  readonly schedules: Schedules
  /** Checks the connection. Rejects if the store does not respond. Takes one round trip. */
  ping(): Promise<void>
  close(): Promise<void>
}
