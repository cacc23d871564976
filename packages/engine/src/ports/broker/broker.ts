// Defines the port that stores tasks. Tasks can be enqueued, looked up, awaited, cancelled, listed and counted.
import type { Enqueued, QueueLimits, TaskId, TaskRecord, TaskStatus, WaitsFor } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import type { EventStream } from '../events.ts'
import type { CancelFilter, CancelOptions, CancelProgress, CancelRule } from './cancelling.ts'
import type { KeyPage, KeyQuery } from './concurrency-keys.ts'
import type {
  DeadChange,
  DeadFilter,
  DeadMatches,
  DeadProgress,
  DeadQuery,
  DeadRequest,
  DeadTaskAnswer,
  FingerprintCount,
  RetryOptions,
} from './dead-tasks.ts'
import type { Groups } from './groups.ts'
import type { NewTask } from './new-task.ts'
import type { Orphans } from './orphans.ts'
import type { Runs } from './runs.ts'
import type { Schedules } from './schedules.ts'

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

/** The tokens of an API key that a request needs in one queue. */
export interface QueueTokens {
  readonly queue: string
  /** The limits of the queue's definition. A command may have set others. */
  readonly limits: QueueLimits | undefined
  readonly tokens: number
}

/**
 * Gives tokens back, by queue, because nothing was stored for them. Leaves out queues in which none were taken. Never rejects: if the store
 * does not respond, the tokens are lost until they are refilled. Call it at most once. If the connection is lost before the reply, the
 * store may receive the tokens twice, but a queue never has more than its rate permits at once.
 */
export type GiveBack = (tokens: ReadonlyMap<string, number>) => Promise<void>

/** The counters of a queue, all as of the same moment. `accepted`, `removed`, `recovered` and `drift` only increase. */
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
   * The number of times that a task has ended, or was deleted before its end. A dead task that is retried ends again. The number
   * falls only if the store loses data, or while plain BullMQ has added tasks that are not counted yet.
   */
  readonly ended: number
  /**
   * The number of times that a task has been returned to the queue because its worker had died, or had not renewed the task's lock
   * in time.
   */
  readonly recovered: number
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
  readonly outbox: OutboxState
}

/** What follows from the ends of a queue's tasks and has not been forwarded yet. */
export interface OutboxState {
  readonly entries: number
  /** When the oldest entry was stored, in ms since 1970. Undefined if there are no entries. */
  readonly oldestAt: number | undefined
}

/**
 * Stores tasks. If the store is unreachable, every method rejects with BullpenError `redis_unavailable` within the broker's
 * command timeout.
 */
export interface Broker {
  /**
   * Stores the task with its queue timeout. The call is atomic and takes one round trip. It is idempotent by id: if a task with
   * this id exists, that task is left unchanged. The action is then `created` if this caller has stored the task, and `existing`
   * if another caller has. The only caller of an id must set `isRepeat` when it repeats a call. If another task has the task's
   * unique key, `onConflict` decides what happens. If the promise rejects, the task may nevertheless have been stored, unless the
   * error code says that it was refused.
   *
   * A task whose idempotency key is remembered is returned even if the queue no longer accepts tasks, which takes one more round trip.
   *
   * @throws QueueFullError if one of the task's `limits` is reached. The decision and the add are one atomic step, so that any
   * number of concurrent callers together never exceed a limit.
   * @throws EnqueueRateError if the task's API key has reached its enqueue rate in the queue.
   * @throws BullpenError `queue_not_found`, `queue_draining`, `redis_full`, `unsafe_redis` if the store may delete tasks,
   * `idempotency_key_reused` if another request had this idempotency key, `idempotency_full` if there is no memory for a record
   * of the key, `unique_key_taken` if another task has this unique key and `onConflict` is 'error', or `payload_too_large` if
   * what would be stored exceeds the broker's size limit or the queue's `maxBytes`.
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
   * @throws BullpenError like {@link enqueue}, and `payload_too_large` if there are too many tasks, or more than a limit
   * permits in an empty queue. If a single task is the reason, the error's pointer begins with that task's index, such as `/3`.
   */
  enqueueAll(tasks: readonly NewTask[]): Promise<readonly Enqueued[]>
  /**
   * Takes tokens of an API key's rates in queues before a request stores anything. Returns undefined if none of the queues limits the
   * rate of the key, without a round trip, unless the settings of a queue have to be read first. The promise may resolve with undefined
   * for the same reason. Otherwise resolves once all tokens are taken, with the function that gives them back.
   *
   * Takes one round trip for each queue with such a rate. The queues may be on different nodes, so the call is atomic in each queue only:
   * if one refuses, the tokens of those before it are given back, which takes one round trip for each, and other requests may be refused
   * in the meantime. All requests take tokens in the same order of queues, so that no two requests refuse each other. If the store stops
   * responding, tokens may be lost until they are refilled, but none is taken in excess of the rate.
   *
   * @throws EnqueueRateError if a queue has too few tokens. The promise rejects with the same error.
   * @throws BullpenError `payload_too_large` if a queue's rate never permits this many tokens at once, or `redis_unavailable`.
   */
  takeInQueues(apiKeyName: string, wanted: readonly QueueTokens[]): Promise<GiveBack | undefined> | undefined
  /**
   * Returns the task's current state, or undefined. Takes one round trip, or two if the task waits in a lane, regardless of the length of
   * the queue.
   */
  find(id: TaskId): Promise<TaskRecord | undefined>
  /**
   * Returns why a task that {@link find} has returned does not run, or undefined if it is running or has ended. If it is waiting,
   * scheduled or retrying, there always is a reason. Takes one round trip, or two if the queue is paused or drained, and another one for
   * every hundred workers beyond the first. Redis looks at up to 1,000 places of lists, and otherwise needs O(log n).
   */
  waitsFor(task: TaskRecord): Promise<WaitsFor | undefined>
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
   * further kinds of error are counted together as `other`. With `limit`, only this many of the largest counts are returned. The
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
   * Returns the progress of {@link changeDead}, or undefined if the id is unknown or the request was completed more than seven days
   * ago. Takes one round trip.
   */
  deadProgress(id: string): Promise<DeadProgress | undefined>
  /**
   * Stops a request of {@link changeDead}: no further task is changed once the call has returned. Tasks that were already changed
   * stay changed. Returns the progress, or undefined if the id is unknown. A request that has been completed or stopped stays as it
   * is. The call is atomic and takes one round trip.
   */
  stopDead(id: string, by: string): Promise<DeadProgress | undefined>
  /**
   * Returns a queue's requests of {@link changeDead} with their progress, newest first. A request is listed as long as its progress
   * is kept and it is among the queue's newest 1,000 requests. `limit` is a number from 1 to 200. Takes one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  listDeadRequests(queue: string, limit: number): Promise<readonly DeadProgress[]>
  /**
   * Lists a queue's tasks in one status, one page at a time: ended tasks from the newest to the oldest, and the others in the order in
   * which they will start or have started.
   *
   * @throws BullpenError `invalid_cursor` if the cursor comes from another listing.
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
  /**
   * Returns a page of a queue's concurrency keys, or a single one. Keys with the same number of tasks are in the descending order of their
   * names. The numbers are not all of the same moment, so a key whose number changes may be listed twice, or not at all.
   *
   * In the order of the backlog, every page examines all keys that have waiting tasks, at most 200,000: there is one round trip
   * for each 1,000 keys, and two commands of Redis for each key. Any other page takes a few round trips. If the queue has no
   * limits of its keys, every call also examines its active tasks, at most 10,000: one round trip for each 1,000 tasks, and one
   * command for each. If there are more than 1,000, tasks that start or end meanwhile may be missed.
   *
   * @throws BullpenError `queue_not_found`, or `invalid_cursor` if the cursor comes from another listing.
   */
  concurrencyKeys(query: KeyQuery): Promise<KeyPage>
  /** Returns the stream of a queue's events. @throws BullpenError `queue_not_found`. */
  events(queue: string): EventStream
  /** Enqueues tasks at regular times. */
  readonly schedules: Schedules
  /** Finds and deletes what is stored without an owner. */
  readonly orphans: Orphans
  /** Awaits and cancels tasks together. */
  readonly groups: Groups
  /** Runs pipelines. */
  readonly runs: Runs
  /** Checks the connection. Rejects if the store does not respond. Takes one round trip. */
  ping(): Promise<void>
  close(): Promise<void>
}
