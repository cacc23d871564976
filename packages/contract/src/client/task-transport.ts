// Defines the port between a client and the transport that carries its calls, which is the HTTP API or Redis. A transport tries
// each call once. The client decides whether to repeat a call, and waits for results.
import type { Cancelled } from '../http/cancel.ts'
import type { Accepted, Dropped, EnqueueRequest } from '../http/enqueue.ts'
import type { BulkAccepted } from '../http/enqueue-bulk.ts'
import type { TaskView } from '../http/task-view.ts'
import type { ProblemError } from './problem-error.ts'

/** What an enqueue returns. */
export type EnqueuedTask = Omit<Accepted, 'links'>

export interface TransportEnqueue {
  readonly idempotencyKey: string | undefined
  /** How long the key is remembered, in seconds, if that is shorter than the setting of the queue or of the transport. */
  readonly idempotencyLifeS?: number | undefined
  /** How long the call may wait for room in the queue, in ms, according to its policy for a full queue. */
  readonly waitMs: number
  /** How long after the first try the call may be repeated, in ms. A key that the transport generates is remembered for longer. */
  readonly retryForMs?: number | undefined
}

export interface TransportBulk extends TransportEnqueue {
  /** Whether to store either all tasks or none. */
  readonly atomic: boolean
}

/**
 * The result for one task of a bulk call: the stored task, a note that the task was dropped because its queue is full, or the error
 * that explains why it was rejected. The error's `outcome` says whether the task may have been stored.
 */
export type BulkEnqueued = BulkAccepted | Dropped | { readonly error: ProblemError }

/** Sends a call once. Calling the function again repeats the same call. Rejects with the signal's reason if the signal aborts. */
export type Try<T> = (signal: AbortSignal | undefined) => Promise<T>

export interface TransportCancel {
  /** How long to wait for a running task to end, in ms. */
  readonly waitMs: number
  /** Who cancels the task, for the attempt record. */
  readonly by: string | undefined
}

/** Every function rejects with ProblemError if the call fails. */
export interface TaskTransport {
  /**
   * Prepares an enqueue. However often the returned function is called, at most one task is stored. If an idempotency key is
   * given, this also applies to other calls with the same key and request.
   */
  enqueue(request: EnqueueRequest, options: TransportEnqueue): Try<EnqueuedTask | Dropped>
  /**
   * Prepares an enqueue of at most 1,000 tasks, whose results are in the order of the requests. However often the returned function is
   * called, each task is stored at most once. If an idempotency key is given, the key and a task's index together identify the task
   * for other calls. If the call is atomic and the tasks are not stored, the returned function rejects.
   */
  enqueueBulk(requests: readonly EnqueueRequest[], options: TransportBulk): Try<readonly BulkEnqueued[]>
  /** Returns the task as soon as it has ended or `waitMs` have elapsed. `waitMs` is at most 30,000. */
  task(id: string, waitMs: number): Try<TaskView>
  /** Cancels a task. Repeating the call has no further effect. */
  cancel(id: string, options: TransportCancel): Try<Cancelled>
  /** Closes the transport's connections. Idempotent. */
  close(): Promise<void>
}
