// Defines the port between a client and the transport that carries its calls, which is the HTTP API or Redis. A transport tries
// each call once. The client decides whether to repeat a call, and waits for results.
import type { Cancelled } from '../http/cancel.ts'
import type { Accepted, Dropped, EnqueueRequest } from '../http/enqueue.ts'
import type { TaskView } from '../http/task-view.ts'

/** What an enqueue returns. */
export type EnqueuedTask = Omit<Accepted, 'links'>

export interface TransportEnqueue {
  readonly idempotencyKey: string | undefined
  /** How long the call may wait for room in the queue, in ms, according to its policy for a full queue. */
  readonly waitMs: number
}

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
  /** Returns the task as soon as it has ended or `waitMs` have elapsed. `waitMs` is at most 30,000. */
  task(id: string, waitMs: number): Try<TaskView>
  /** Cancels a task. Repeating the call has no further effect. */
  cancel(id: string, options: TransportCancel): Try<Cancelled>
  /** Closes the transport's connections. Idempotent. */
  close(): Promise<void>
}
