// Defines the port between a client and the transport that carries its calls, which is the HTTP API or Redis. A transport tries
// each call once. The client decides whether to repeat a call, and waits for results.

import type { Deleted } from '../http/dead-tasks.ts'
import type { AddToGroupRequest, CreateGroupRequest, GroupResults, GroupView, MembersAdded } from '../http/groups.ts'
import type { RunErrors, RunView, StartRunRequest } from '../http/pipelines.ts'
import type { Cancelled } from '../http/tasks/cancel.ts'
import type { Accepted, Dropped, EnqueueRequest } from '../http/tasks/enqueue.ts'
import type { BulkAccepted } from '../http/tasks/enqueue-bulk.ts'
import type {
  Disconnected,
  EventGap,
  GroupEnded,
  GroupSnapshot,
  QueueSnapshot,
  StreamedEvent,
  TaskSnapshot,
} from '../http/tasks/streamed-events.ts'
import type { TaskView } from '../http/tasks/task-view.ts'
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

/**
 * One event of a stream, with the id after which the stream is resumed. Without an event, only that id has changed. Without either, the
 * stream is available, and nothing has happened.
 */
export interface TransportEvent {
  readonly id: string | undefined
  readonly event:
    | StreamedEvent
    | TaskSnapshot
    | QueueSnapshot
    | GroupSnapshot
    | GroupEnded
    | EventGap
    | Disconnected
    | undefined
  /** How long the client should wait before it connects again, in ms. */
  readonly retryMs?: number | undefined
}

/**
 * Streams events once: all of those after this id, or those of a new stream. Ends when the other side ends the stream. Throws
 * ProblemError if the stream fails, and the signal's reason if the signal aborts.
 */
export type EventTry = (after: string | undefined, signal: AbortSignal | undefined) => AsyncIterable<TransportEvent>

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
  /** Prepares a stream of a task's events, which ends when the task has ended. */
  events(id: string): EventTry
  /** Cancels a task. Repeating the call has no further effect. */
  cancel(id: string, options: TransportCancel): Try<Cancelled>
  readonly groups: GroupTransport
  readonly runs: RunTransport
  /** Closes the transport's connections. Idempotent. */
  close(): Promise<void>
}

/** The calls about the runs of pipelines. Each may be repeated without a further effect. */
export interface RunTransport {
  /** Starts a pipeline. `request.id` identifies the run. */
  start(request: StartRunRequest & { readonly id: string }): Try<RunView>
  cancel(id: string, by: string | undefined): Try<RunView>
  /** Deletes a run that has ended. A call that is repeated after it has taken effect rejects with `run_not_found`. */
  delete(id: string, by: string | undefined): Try<Deleted>
  /** Returns the run as soon as it has ended or `waitMs` have elapsed. `waitMs` is at most 30,000. */
  show(id: string, waitMs: number): Try<RunView>
  /** Returns up to 200 errors, beginning with the one at `from`. */
  errors(id: string, from: number): Try<RunErrors>
}

/** The calls about groups. Each may be repeated without a further effect. */
export interface GroupTransport {
  /** Creates a group. `request.id` identifies it. */
  create(request: CreateGroupRequest & { readonly id: string }): Try<GroupView>
  /** Adds members. However often the returned function is called with the same key, they are added once. */
  add(id: string, request: AddToGroupRequest, idempotencyKey: string): Try<MembersAdded>
  seal(id: string): Try<GroupView>
  cancel(id: string, by: string | undefined): Try<GroupView>
  /** Returns the group as soon as it has ended or `waitMs` have elapsed. `waitMs` is at most 30,000. */
  show(id: string, waitMs: number): Try<GroupView>
  /** Returns up to 200 members, beginning with the number `from`. */
  results(id: string, from: number): Try<GroupResults>
  /** Prepares a stream of the events of a group's members, which ends when the group has ended. */
  events(id: string): EventTry
}
